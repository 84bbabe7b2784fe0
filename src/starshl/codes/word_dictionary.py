"""WordDictionary: class posteriors by number, a few of which stand for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._common.lazy import library
from .._common.threads import single_threaded_blas
from .binary import BinaryCodes
from .codewords import binary_words
from .hamming_words import HammingWords

sparse = library("scipy.sparse")
_FLOOR = 1e-7  # of a probability, so that its logarithm is finite
_ROUNDS = 4  # of assigning rows and averaging them, before words are added; more change nothing
_SMOOTHING = 0.02  # rows of its old posterior that a word keeps
_FEWEST_ROWS, _LEAST_LOSS = 4, 1e-6  # of a word that is split
_SURE = 0.9  # the share of a class that no row is likeliest to be of
_FEW_CLASSES = 64  # up to which a row compares all entries while they are learned
_PRODUCTS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class WordDictionary:
    """Posteriors by number: those of labels first, which are certain, and then learned ones.

    The word of a posterior is the number of the entry of least cross-entropy. Numbers mean nothing outside the
    dictionary: two fits have two of them.

    Parameters
    ----------
    entries : array of shape (2**n_bits or fewer, n_classes)
        Rows that sum to one. If the first ``n_classes`` are certain, they are the words of labels.
    n_bits : int
        Length of a number in binary. Labels have words if there are at least two numbers per class.
    """

    entries: np.ndarray
    n_bits: int

    @classmethod
    def fitted(cls, posteriors: np.ndarray, n_bits: int) -> WordDictionary:
        """Learn the entries; no label is needed.

        A dictionary with less than two words per class has no words for labels, which are coded like other posteriors.

        Parameters
        ----------
        posteriors : array of shape (n_rows, n_classes)
            Of rows that did not take part in their own posterior, or no entry would stand for doubt.
        n_bits : int
        """
        n_classes, n_words = posteriors.shape[1], 1 << n_bits
        labels = np.eye(n_classes, dtype=np.float32)[: n_classes if n_words >= 2 * n_classes else 0]
        learned = _learned_entries(np.asarray(posteriors, np.float64), n_words - len(labels))
        return cls(np.vstack([labels, learned]).astype(np.float32), n_bits)

    @property
    def n_classes(self) -> int:
        """How many classes a posterior is over."""
        return int(self.entries.shape[1])

    @property
    def has_labels(self) -> bool:
        """Whether the first entries are the certain ones of labels."""
        # Without room for them, entries that are learned from sure rows may be certain, too.
        has_room = len(self.entries) > self.n_classes and 1 << self.n_bits >= 2 * self.n_classes
        return has_room and bool(np.all(np.diag(self.entries) == 1))

    def numbers_of(self, posteriors: np.ndarray) -> np.ndarray:
        """Return the number of the learned entry of least cross-entropy for each posterior."""
        first, logs = self.learned_logs
        return first + _nearest(np.asarray(posteriors, np.float32), logs)

    @cached_property
    def learned_logs(self) -> tuple[int, np.ndarray]:
        """The number of the first learned entry, and the logarithms of all learned ones."""
        first = self.n_classes if self.has_labels else 0
        return first, _logs(self.entries[first:])

    def numbers_of_classes(self, columns: np.ndarray) -> np.ndarray:
        """Return the numbers of the entries that stand for labels of these classes."""
        if self.has_labels:
            return np.asarray(columns, np.int64)
        return self.numbers_of(np.eye(self.n_classes, dtype=np.float32)[columns])

    def encode(self, posteriors: np.ndarray) -> np.ndarray:
        """Return the words of posteriors as signs, their numbers in binary, int8 of shape (n, n_bits)."""
        return binary_words(self.numbers_of(posteriors), self.n_bits)

    def decode(self, numbers: np.ndarray) -> np.ndarray:
        """Return the posteriors of numbers, float32 of shape (n, n_classes); those without an entry have the last."""
        return self.entries[np.minimum(numbers, len(self.entries) - 1)]

    def posteriors_of(self, codes: BinaryCodes) -> np.ndarray:
        """Return the posteriors that codes stand for, whose first bits are a number."""
        return self.decode(numbers_in(codes, self.n_bits))

    def with_labels(self, codes: BinaryCodes, columns: np.ndarray) -> BinaryCodes:
        """Return the codes, whose numbers say which of them follow from a label."""
        return codes

    def columns_of(self, codes: BinaryCodes) -> np.ndarray:
        """Return the class of codes that follow from a label, -1 elsewhere."""
        numbers = numbers_in(codes, self.n_bits)
        return np.where(self.has_labels & (numbers < self.n_classes), numbers, -1)


#: What codes of items, or their first bits, stand for.
Words: TypeAlias = HammingWords | WordDictionary


def numbers_in(codes: BinaryCodes, n_bits: int) -> np.ndarray:
    """Return the number in the first bits of each code, lowest bit first."""
    bits = np.unpackbits(codes.packed, axis=1, bitorder="little", count=n_bits)
    return bits.astype(np.int64) @ (1 << np.arange(n_bits))


def _learned_entries(posteriors: np.ndarray, n_words: int) -> np.ndarray:
    """Return at most ``n_words`` posteriors that stand for all rows: means, split where they lose most.

    With many classes, a row only compares entries that were split from the mean of its likeliest class.
    """
    top = posteriors.argmax(axis=1)
    entries = _means_by_class(posteriors, top)
    origins = np.arange(len(entries))
    if len(entries) > n_words:
        origins = np.sort(np.argsort(-np.bincount(top, minlength=len(entries)), kind="stable")[:n_words])
        entries = entries[origins]
    by_class = None
    if len(entries) > _FEW_CLASSES and len(origins) == posteriors.shape[1]:
        by_class = np.split(np.argsort(top, kind="stable"), np.cumsum(np.bincount(top, minlength=len(entries)))[:-1])

    def nearest() -> np.ndarray:
        logs = _logs(entries)
        return (
            _nearest(posteriors, logs) if by_class is None else _nearest_of_class(posteriors, logs, by_class, origins)
        )

    entropy = np.sum(posteriors * np.log(np.maximum(posteriors, _FLOOR)), axis=1)
    least = np.inf
    while True:
        for _ in range(_ROUNDS):
            entries = _averaged(posteriors, nearest(), entries)
        chosen = nearest()
        if len(entries) >= n_words:
            return entries
        losses = entropy - np.einsum("ng,ng->n", posteriors, _logs(entries)[chosen])
        if losses.sum() > least - _LEAST_LOSS:  # what was added last gained nothing, and so it would go on
            return entries
        least = losses.sum()
        split, added = _split(
            posteriors, chosen, losses, entries, min(n_words - len(entries), max(1, len(entries) // 2))
        )
        if not len(added):
            return entries
        entries, origins = np.vstack([entries, added]), np.concatenate([origins, origins[split]])


def _means_by_class(posteriors: np.ndarray, top: np.ndarray) -> np.ndarray:
    n_classes = posteriors.shape[1]
    unseen = (1 - _SURE) / n_classes + _SURE * np.eye(n_classes)
    sums = _sums(posteriors, top, n_classes)
    sizes = np.bincount(top, minlength=n_classes)
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], unseen)


def _averaged(posteriors: np.ndarray, nearest: np.ndarray, entries: np.ndarray) -> np.ndarray:
    sizes = np.bincount(nearest, minlength=len(entries))[:, None]
    return (_sums(posteriors, nearest, len(entries)) + _SMOOTHING * entries) / (sizes + _SMOOTHING)


def _split(
    posteriors: np.ndarray, nearest: np.ndarray, losses: np.ndarray, entries: np.ndarray, n_most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return entries of the largest summed loss, and a second one for each, halfway to its worst row."""
    totals = np.bincount(nearest, losses, minlength=len(entries))
    sizes = np.bincount(nearest, minlength=len(entries))
    order = np.argsort(-totals, kind="stable")
    order = order[(sizes[order] >= _FEWEST_ROWS) & (totals[order] > _LEAST_LOSS)][:n_most]
    worst_last = np.lexsort((losses, nearest))
    ends = np.cumsum(sizes)
    worst = worst_last[ends[order] - 1]
    return order, 0.5 * (entries[order] + posteriors[worst])


def _sums(posteriors: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    rows = np.arange(len(groups))
    members = sparse.csr_array((np.ones(len(groups)), (groups, rows)), shape=(n_groups, len(groups)))
    return np.asarray(members @ posteriors)


def _logs(entries: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(entries, _FLOOR))


def _nearest(posteriors: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return the entry of least cross-entropy for each row."""
    nearest = np.empty(len(posteriors), np.int64)
    n_at_once = max(1, _PRODUCTS_AT_ONCE // len(logs))
    with single_threaded_blas():
        for start in range(0, len(posteriors), n_at_once):
            rows = slice(start, start + n_at_once)
            nearest[rows] = np.argmax(posteriors[rows] @ logs.T, axis=1)
    return nearest


def _nearest_of_class(
    posteriors: np.ndarray, logs: np.ndarray, by_class: list[np.ndarray], origins: np.ndarray
) -> np.ndarray:
    """Return the entry of least cross-entropy for each row, among those that began with its likeliest class."""
    nearest = np.empty(len(posteriors), np.int64)
    order = np.argsort(origins, kind="stable")
    entries = np.split(order, np.cumsum(np.bincount(origins, minlength=len(by_class)))[:-1])
    for rows, own in zip(by_class, entries, strict=True):
        if len(rows):
            nearest[rows] = own[_nearest(posteriors[rows], logs[own])]
    return nearest
