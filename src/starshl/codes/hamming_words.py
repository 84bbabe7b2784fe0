"""HammingWords: a class posterior as a word near the codewords of its classes, compared bit by bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._common.lazy import library
from .._common.threads import run_all, tiles
from . import _word_loops as loops
from .binary import BinaryCodes

optimize = library("scipy.optimize")
# The sharpness is chosen on so many rows. A hundred give the same; more take longer.
_ROWS = 500
_LARGEST, _MOST_STEPS, _TOLERANCE = 4.0, 20, 0.02
_ROWS_AT_ONCE = 1024
# Of queries where bits are counted. With 3 instead of 5, unlabeled items come in nearly the same order, labeled ones in
# a worse one.
SHARPENING = 5


@dataclass(frozen=True, eq=False)
class HammingWords:
    r"""Words that stand for posteriors: the nearer a word is to a codeword, the more likely is its class.

    A word w stands for the posterior

    .. math:: h_g(w) \propto \exp(-a\, d_H(w, \mu_g)),

    and the word of a posterior p is the one of least cross-entropy :math:`-\sum_g p_g \log h_g(w)` that flips of single
    bits find, from the codeword of the likeliest class on.

    Parameters
    ----------
    codewords : array of shape (n_classes, n_bits), int8 of -1 and +1
        One per class; different ones, or classes cannot be told apart.
    sharpness : float
        The number a. :meth:`fitted` chooses it.
    numbers : array of shape (n_classes,), default=None
        The number of each class in :attr:`BinaryCodes.classes`: its position in the codebook. None is 0, 1, 2, ...
    """

    codewords: np.ndarray
    sharpness: float
    numbers: np.ndarray | None = None

    @classmethod
    def fitted(cls, codewords: np.ndarray, posteriors: np.ndarray, numbers: np.ndarray | None = None) -> HammingWords:
        """Return words whose sharpness loses least of posteriors that are coded and read back.

        Parameters
        ----------
        codewords, numbers : see above
        posteriors : array of shape (n_rows, n_classes)
            Of rows that did not take part in their own posterior, or the words would be far too sure.
        """
        few = posteriors[spread_rows(len(posteriors))]
        if len(codewords) < 2:
            return cls(codewords, 1.0, numbers)

        def loss(log_sharpness: float) -> float:
            words = cls(codewords, float(np.exp(log_sharpness)))
            logs = np.log(np.maximum(words.decode(words.encode(few)), 1e-30))
            return -float(np.mean(np.sum(few * logs, axis=1)))

        bounds = np.log(0.5 / codewords.shape[1]), np.log(_LARGEST)
        options = {"xatol": _TOLERANCE, "maxiter": _MOST_STEPS}
        found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
        return cls(codewords, float(np.exp(found.x)), numbers)

    @property
    def n_classes(self) -> int:
        """How many classes a posterior is over."""
        return len(self.codewords)

    @property
    def n_bits(self) -> int:
        """Length of the words."""
        return int(self.codewords.shape[1])

    def encode(self, posteriors: np.ndarray, *, keeps_nearest: bool = False) -> np.ndarray:
        """Return the words of posteriors as signs, int8 of shape (n, n_bits).

        With ``keeps_nearest``, the codeword of the likeliest class stays strictly the nearest one, as far as it is
        different from the others: so a search by Hamming distance begins with that class.
        """
        given = np.ascontiguousarray(posteriors, np.float32)
        codewords = np.ascontiguousarray(self.codewords, np.float32)
        words = np.empty((len(given), self.n_bits), np.int8)

        def encode(rows: slice) -> None:
            loops.encode(given[rows], codewords, self.sharpness, keeps_nearest, words[rows])

        run_all([partial(encode, rows) for rows in tiles(len(given), _ROWS_AT_ONCE)])
        return words

    def encode_queries(self, posteriors: np.ndarray) -> np.ndarray:
        """Return the words of queries for searches that only count bits, as signs.

        They are those of sharper posteriors, in proportion to p**5: words of doubt on both sides are far from all.
        """
        sharper = (posteriors / posteriors.max(axis=1, keepdims=True)) ** SHARPENING
        return self.encode(sharper / sharper.sum(axis=1, keepdims=True), keeps_nearest=True)

    def encode_items(self, posteriors: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the words of items as signs: the codeword of the class in ``columns`` where that is not -1."""
        signs = self.codewords[columns].astype(np.int8)
        signs[columns < 0] = self.encode(posteriors[columns < 0])
        return signs

    def decode(self, signs: np.ndarray) -> np.ndarray:
        """Return the posteriors that words stand for, float32 of shape (n, n_classes)."""
        decoded = np.empty((len(signs), self.n_classes), np.float32)
        for start in range(0, len(signs), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            # Whole numbers up to 2**24: exact in any order of the sum.
            products = signs[rows].astype(np.float32) @ self.codewords.T.astype(np.float32)
            logits = np.float32(0.5 * self.sharpness) * products
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            decoded[rows] = logits / logits.sum(axis=1, keepdims=True)
        return decoded

    def posteriors_of(self, codes: BinaryCodes) -> np.ndarray:
        """Return the posteriors that codes stand for: certainty where a label is known."""
        return with_known_classes(self.decode(codes.to_signs()[:, : self.n_bits]), self.columns_of(codes))

    def with_labels(self, codes: BinaryCodes, columns: np.ndarray) -> BinaryCodes:
        """Return codes that say of which class those are that follow from a label; other columns are -1."""
        numbers = np.arange(self.n_classes) if self.numbers is None else self.numbers
        return replace(codes, classes=np.append(numbers, -1)[columns])

    def columns_of(self, codes: BinaryCodes) -> np.ndarray:
        """Return the class of codes that follow from a label, -1 elsewhere and for classes that are not known here."""
        if codes.classes is None:
            return np.full(len(codes), -1)
        if self.numbers is None:
            return np.where(codes.classes < self.n_classes, codes.classes, -1)
        order = np.argsort(self.numbers)
        columns = order[np.minimum(np.searchsorted(self.numbers, codes.classes, sorter=order), self.n_classes - 1)]
        return np.where(np.asarray(self.numbers)[columns] == codes.classes, columns, -1)


def spread_rows(n_rows: int) -> np.ndarray:
    """Return the rows, out of so many, that are enough to choose the sharpness of words."""
    return np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(np.int64)


def with_known_classes(posteriors: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the posteriors, with certainty in those columns that are not -1."""
    known = np.flatnonzero(columns >= 0)
    posteriors[known] = 0.0
    posteriors[known, columns[known]] = 1.0
    return posteriors
