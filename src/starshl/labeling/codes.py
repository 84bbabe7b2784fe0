"""Codes that follow a lesson: a hasher fitted to the given and predicted labels of a sample, and the codes of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, cast

import numpy as np

from .._common.labels import Label
from .._common.worker import Worker
from ..codes.binary import BinaryCodes
from ..codes.codebook import Codebook
from ..collection.collection import Collection
from ..hashers.base import BaseHasher
from ..hashers.hybrid import HybridHasher
from ..hashers.star.star_ridge import StarRidge
from ..learning.linalg import principal_directions
from .active_learning import ClassProbabilities

_MOST_ROWS = 2500  # a fit takes seconds; what the others say is in the spread labels already
_FEWEST_PER_CLASS = 10  # discriminant analysis needs as many
_FEWEST_WORDS = 16  # room for new classes before codes have to change their space
_LEAST_TRUST = 0.02  # a weight must be positive; such a row counts next to nothing
_BATCH = 4096  # items between two reports of progress
_SECONDS_IDLE = 60.0  # a person who pauses for longer may have left


@dataclass(frozen=True, slots=True)
class CodesTask:
    """Everything but the rows that codes follow from; small enough to be sent to another process.

    Parameters
    ----------
    classes : their names
    given, predicted : int arrays of shape (n_items,), numbers of classes, -1 for none: what a person said, and what
        follows from it
    confidences : array of shape (n_items,), of the predictions
    n_bits : length of the codes so far
    codebook : words of the classes, others in reserve
    """

    classes: tuple[Label, ...]
    given: np.ndarray
    predicted: np.ndarray
    confidences: np.ndarray
    n_bits: int
    codebook: Codebook

    @classmethod
    def of(
        cls, classes: tuple[Label, ...], given: np.ndarray, estimate: ClassProbabilities, current: BaseHasher
    ) -> Self:
        """Return the task of bringing the codes of the current hasher up to date."""
        codebook = _codebook(classes, current)
        return cls(classes, given, estimate.predicted, estimate.confidences, current.n_bits_, codebook)


def _codebook(classes: Sequence[Label], current: BaseHasher) -> Codebook:
    """Return the codebook of the current hasher with words for new classes or, if that cannot be, a new one."""
    known = current.class_part.class_codebook
    if known is not None and current.class_rule is not None and not current.holds_clusters:
        new = [label for label in classes if label not in known.classes.tolist()]
        same_type = isinstance(known.classes.tolist()[0], str) == isinstance(classes[0], str)
        if same_type and len(new) <= known.n_reserved and known.fit_digest is None:
            for label in new:
                known = known.assign(label)
            return known
    n_words = max(_FEWEST_WORDS, 1 << (2 * len(classes) - 1).bit_length())
    return Codebook.numbered(list(classes), n_reserved=n_words - len(classes))


def learn_codes(rows: np.ndarray, task: CodesTask, report: Callable[[str], None]) -> tuple[HybridHasher, np.ndarray]:
    """Return a hybrid hasher and the packed codes of all rows, each with its predicted class.

    The hasher is fitted to given labels and, with less weight, to others. The class of an item takes the place of its
    word in a codebook with words in reserve. As long as these suffice, and unless a rare class needs further rows,
    codes before and after are of one space.
    """
    report("fitting")
    hasher, names, packed = _fitted(rows, task), np.array(task.classes), []
    for start in range(0, len(rows), _BATCH):
        report(f"encoding {start:,} of {len(rows):,}")
        part = slice(start, start + _BATCH)
        packed.append(hasher.relabel(hasher.encode(rows[part]), names[task.predicted[part]]).packed)
    return hasher, np.concatenate(packed)


def codes_worker(rows: np.ndarray) -> Worker[tuple[HybridHasher, np.ndarray]]:
    """Return a process of low priority that learns codes of these rows, again and again.

    In this one, a fit would compete with every answer for the interpreter and for the threads of BLAS, which take turns
    however many cores there are.
    """
    return Worker(partial(learn_codes, rows), background=True, idle_seconds=_SECONDS_IDLE)


def _fitted(rows: np.ndarray, task: CodesTask) -> HybridHasher:
    sample = _sample(task)
    is_given = task.given[sample] >= 0
    trust = np.where(is_given, 1.0, np.maximum(2 * task.confidences[sample] - 1, _LEAST_TRUST))
    n_digits = (len(task.codebook.words) - 1).bit_length()
    n_wanted = max(task.n_bits - n_digits, 1)
    # Columns that depend on others, as those of categories do, give no bits.
    n_bits = n_digits + max(len(principal_directions(rows[sample], n_wanted)[0]), 1)
    ridge = StarRidge(task.codebook.n_bits, codewords=task.codebook, random_state=0)
    hybrid = HybridHasher(n_bits, class_hasher=ridge, codewords=task.codebook, random_state=0)
    hybrid.fit(rows[sample], np.array(task.classes)[task.predicted[sample]], sample_weight=trust)
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
    for number in range(len(task.classes)):
        members = task.predicted == number
        n_missing = min(_FEWEST_PER_CLASS, int(members.sum())) - int((members & is_sampled).sum())
        if n_missing > 0:
            outside = members & ~is_sampled
            ranked = np.lexsort((np.arange(n_items), -task.confidences, ~outside))
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
