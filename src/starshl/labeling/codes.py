"""Codes that follow a lesson: a hasher fitted to the given and predicted labels of a sample, and the codes of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from .._common.labels import Label, Labels
from .._common.worker import Worker
from ..codes.binary import BinaryCodes
from ..collection.collection import Collection
from ..hashers.base import BaseHasher
from ..hashers.hybrid import HybridHasher, n_class_bits
from ..learning.graphs.label_spreading import Spread, SpreadLabels
from ..learning.linalg import principal_directions
from .active_learning import ClassProbabilities

_MOST_ROWS = 2500  # a fit takes seconds; what the others say is in the spread labels already
_LEAST_SHARE = 0.02  # that items of classes which are too rare for the fit have left for the others
_BATCH = 4096  # items between two reports of progress
_SECONDS_IDLE = 60.0  # a person who pauses for longer may have left


@dataclass(frozen=True, slots=True)
class CodesTask:
    """Everything but the rows that codes follow from; small enough to be sent to another process.

    Parameters
    ----------
    classes : their names
    spread : what follows from the labels that a person gave
    n_bits : length of the codes so far
    """

    classes: tuple[Label, ...]
    spread: Spread
    n_bits: int

    @classmethod
    def of(cls, classes: tuple[Label, ...], estimate: ClassProbabilities, current: BaseHasher) -> Self:
        """Return the task of bringing the codes of the current hasher up to date."""
        spread = estimate.spread
        small = replace(spread, probabilities=spread.probabilities.astype(np.float32), on_graph=None)
        return cls(classes, small, current.n_bits_)


def learn_codes(rows: np.ndarray, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
    """Return a hybrid hasher and the packed codes of all rows, which stand for the probabilities of their classes.

    The hasher is fitted to given labels and to what was spread from them.
    """
    report("fitting")
    hasher, packed = _fitted(rows, task), []
    columns = [task.classes.index(label) for label in hasher.class_labels]
    for start in range(0, len(rows), _BATCH):
        report(f"encoding {start:,} of {len(rows):,}")
        part = slice(start, start + _BATCH)
        packed.append(
            _with_probabilities(hasher, hasher.encode(rows[part]), task.spread.probabilities[part][:, columns])
        )
    return hasher, np.concatenate(packed)


def _with_probabilities(hasher: HybridHasher, codes: BinaryCodes, probabilities: np.ndarray) -> np.ndarray:
    """Return packed codes that begin with the words of these probabilities, which know more than one row does."""
    words, signs = hasher.words, codes.to_signs()
    # Few items, if any, are of a class that is too rare to be among those of the fit.
    shares = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), _LEAST_SHARE)
    signs[:, : words.n_bits] = words.encode(shares)
    return BinaryCodes.from_signs(signs).packed


def codes_worker(rows: np.ndarray) -> Worker[tuple[HybridHasher, np.ndarray]]:
    """Return a process of low priority that learns codes of these rows, again and again.

    In this one, a fit would compete with every answer for the interpreter and for the threads of BLAS, which take turns
    however many cores there are.
    """
    return Worker(partial(learn_codes, rows), background=True, idle_seconds=_SECONDS_IDLE)


def _fitted(rows: np.ndarray, task: CodesTask) -> HybridHasher:
    sample = _sample(task.spread)
    spread, names = task.spread.take(sample), np.array(task.classes)
    present = np.unique(spread.index[spread.is_given])
    order = present[np.argsort(names[present])]
    spread = spread.among(order)
    labels = Labels.from_index(names[order], np.where(spread.is_given, spread.index, -1), names.dtype)
    n_digits = n_class_bits(len(order), task.n_bits)
    n_wanted = max(task.n_bits - n_digits, 1)
    # Columns that depend on others, as those of categories do, give no bits.
    n_bits = n_digits + max(len(principal_directions(rows[sample], n_wanted)[0]), 1)
    known = SpreadLabels(labels.classes[spread.index], labels.classes, spread)
    return HybridHasher(n_bits, random_state=0).fit(rows[sample], labels, spread=known)


def _sample(spread: Spread) -> np.ndarray:
    """Return the rows to fit: those with a given label, and others that stay the same."""
    n_items = len(spread.index)
    order = np.random.RandomState(0).permutation(n_items)
    order = order[np.argsort(~spread.is_given[order], kind="stable")]
    return np.sort(order[:_MOST_ROWS])


def with_preparation_of(current: BaseHasher, hybrid: HybridHasher) -> BaseHasher:
    """Return a hasher that prepares vectors as the current one does, if it does."""
    fitted = current.with_hasher(hybrid)
    fitted.fit_record_ = hybrid.fit_record_
    return fitted


def store_codes(collection: Collection, hasher: BaseHasher, ids: np.ndarray, codes: BinaryCodes) -> None:
    """Replace the hasher of a collection by another one that gives these items these codes.

    Items that were added since they were computed get the codes of their kept vectors; those that were removed are left
    out.
    """
    held = collection.ids
    if not np.array_equal(held, ids):
        added = held[~np.isin(held, ids)]
        stays = np.isin(ids, held)
        parts = [codes.packed[stays]]
        if len(added):
            parts.append(hasher.without_steps().encode_database(collection.vectors(added)).packed)
        ids, codes = np.concatenate([ids[stays], added]), hasher.as_codes(np.concatenate(parts))
    collection.replace_hasher(hasher, ids, codes=codes)
