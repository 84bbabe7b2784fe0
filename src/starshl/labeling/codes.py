"""Codes that follow a lesson: a hasher fitted to the given and predicted labels of a sample, and the codes of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self, cast

import numpy as np

from .._common.labels import Label
from .._common.worker import Worker
from ..codes.binary import BinaryCodes
from ..collection.collection import Collection
from ..hashers.base import BaseHasher
from ..hashers.hybrid import HybridHasher, n_class_bits
from ..hashers.star.star_ridge import StarRidge
from ..learning.linalg import principal_directions
from .active_learning import ClassProbabilities

_MOST_ROWS = 2500  # a fit takes seconds; what the others say is in the spread labels already
_FEWEST_PER_CLASS = 10  # discriminant analysis needs as many
_LEAST_TRUST = 0.02  # a weight must be positive; such a row counts next to nothing
_BATCH = 4096  # items between two reports of progress
_SECONDS_IDLE = 60.0  # a person who pauses for longer may have left


@dataclass(frozen=True, slots=True)
class CodesTask:
    """Everything but the rows that codes follow from; small enough to be sent to another process.

    Parameters
    ----------
    classes : their names
    given : int array of shape (n_items,), the number of the class that a person said, -1 for none
    probabilities : array of shape (n_items, n_classes), what follows from it
    n_bits : length of the codes so far
    """

    classes: tuple[Label, ...]
    given: np.ndarray
    probabilities: np.ndarray
    n_bits: int

    @classmethod
    def of(
        cls, classes: tuple[Label, ...], given: np.ndarray, estimate: ClassProbabilities, current: BaseHasher
    ) -> Self:
        """Return the task of bringing the codes of the current hasher up to date."""
        return cls(classes, given, estimate.probabilities.astype(np.float32), current.n_bits_)

    @property
    def predicted(self) -> np.ndarray:
        """The likeliest class of each item."""
        return np.asarray(self.probabilities.argmax(axis=1))


def learn_codes(rows: np.ndarray, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
    """Return a hybrid hasher and the packed codes of all rows, which stand for the probabilities of their classes.

    The hasher is fitted to given labels and, with less weight, to others.
    """
    report("fitting")
    hasher, packed = _fitted(rows, task), []
    columns = [task.classes.index(label) for label in hasher.class_labels]
    for start in range(0, len(rows), _BATCH):
        report(f"encoding {start:,} of {len(rows):,}")
        part = slice(start, start + _BATCH)
        packed.append(_with_probabilities(hasher, hasher.encode(rows[part]), task.probabilities[part][:, columns]))
    return hasher, np.concatenate(packed)


def _with_probabilities(hasher: HybridHasher, codes: BinaryCodes, probabilities: np.ndarray) -> np.ndarray:
    """Return packed codes that begin with the words of these probabilities, which know more than one row does."""
    words, signs = hasher.words, codes.to_signs()
    # Few items, if any, are of a class that is too rare to be among those of the fit.
    shares = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), _LEAST_TRUST)
    signs[:, : words.n_bits] = words.encode(shares)
    return BinaryCodes.from_signs(signs).packed


def codes_worker(rows: np.ndarray) -> Worker[tuple[HybridHasher, np.ndarray]]:
    """Return a process of low priority that learns codes of these rows, again and again.

    In this one, a fit would compete with every answer for the interpreter and for the threads of BLAS, which take turns
    however many cores there are.
    """
    return Worker(partial(learn_codes, rows), background=True, idle_seconds=_SECONDS_IDLE)


def _fitted(rows: np.ndarray, task: CodesTask) -> HybridHasher:
    sample, predicted = _sample(task), task.predicted
    is_given, confidences = task.given[sample] >= 0, task.probabilities[sample].max(axis=1)
    trust = np.where(is_given, 1.0, np.maximum(2 * confidences - 1, _LEAST_TRUST))
    n_digits = n_class_bits(len(task.classes), task.n_bits)
    n_wanted = max(task.n_bits - n_digits, 1)
    # Columns that depend on others, as those of categories do, give no bits.
    n_bits = n_digits + max(len(principal_directions(rows[sample], n_wanted)[0]), 1)
    hybrid = HybridHasher(n_bits, random_state=0)
    hybrid.fit(rows[sample], np.array(task.classes)[predicted[sample]], sample_weight=trust)
    # Not all labels of the fit come from a person, and what it tells of itself must say so.
    n_given = int(is_given.sum())
    hybrid.fit_record_ = hybrid.fit_record_ | {"labels_given": n_given, "labels_predicted": len(sample) - n_given}
    if n_given < len(sample):
        fitted = cast(StarRidge, hybrid.class_hasher_)
        fitted.choice_ = fitted.choice_.replace("leave-one-out accuracy", "leave-one-out agreement with the guesses")
    return hybrid


def _sample(task: CodesTask) -> np.ndarray:
    """Return the rows to fit: always the same ones but for classes that are rare among them."""
    n_items = len(task.given)
    order = np.random.RandomState(0).permutation(n_items)
    is_sampled = np.zeros(n_items, dtype=bool)
    is_sampled[order[:_MOST_ROWS]] = True
    predicted, confidences = task.predicted, task.probabilities.max(axis=1)
    for number in range(len(task.classes)):
        members = predicted == number
        n_missing = min(_FEWEST_PER_CLASS, int(members.sum())) - int((members & is_sampled).sum())
        if n_missing > 0:
            outside = members & ~is_sampled
            ranked = np.lexsort((np.arange(n_items), -confidences, ~outside))
            is_sampled[ranked[:n_missing]] = True
    return np.flatnonzero(is_sampled)


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
