"""WordHasher: codes that stand for class posteriors, whatever estimates them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from .._common.labels import LabelsLike, check_labels
from .._common.validation import SamplesLike, check_integer
from ..codes.binary import BinaryCodes
from ..codes.codebook import Codebook, CodewordsLike
from ..codes.hamming_words import HammingWords
from ..codes.queries import EncodedQueries
from .base import BaseHasher, supported
from .star.star_training import initial_codewords, warn_about_length


class WordHasher(BaseHasher):
    """A hasher with ``predict_proba`` and codewords, whose codes of items are words near those of likely classes.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    codewords_ : array of shape (n_classes, n_bits), int8
    codebook_ : Codebook, which class has which codeword
    sharpness_ : how fast words of this length lose the probability of a class with the distance from its codeword
    """

    codewords: CodewordsLike
    codewords_: np.ndarray
    codebook_seed_: int
    sharpness_: float

    @abstractmethod
    def _unseen_posteriors(self) -> np.ndarray:
        """Return posteriors of rows of the fit that took no part in their own."""

    def with_bits(self, n_bits: int, codewords: CodewordsLike | None = None) -> Self:
        """Return a fitted hasher of another length or with other codewords, without a second fit.

        It shares the arrays of this one. The codes are those of a fit with ``n_bits`` and the same seed.

        Parameters
        ----------
        n_bits : int
        codewords : {"separated", "random"}, array of shape (n_classes, n_bits) or Codebook, default=None
            None is the setting of this hasher; "separated" if that was an array; and if it was a Codebook, one of the
            same classes and reserved words.
        """
        self._require_fit()
        if codewords is None:
            codewords = self.codewords if isinstance(self.codewords, str) else "separated"
            if isinstance(self.codewords, Codebook):
                codewords = self.codewords.resized(n_bits)
        other: Self = clone(self).set_params(n_bits=n_bits, codewords=codewords)
        for name, value in self._learned_state().items():
            setattr(other, name, value)
        other._set_codewords(check_integer(n_bits, "n_bits", low=1), codewords)
        return other

    def _set_codewords(self, n_bits: int, codewords: CodewordsLike) -> None:
        """Set the codewords, and everything else that depends on them."""
        warn_about_length(len(self.classes_), n_bits)
        rng = np.random.RandomState(self.codebook_seed_)
        self.codewords_ = initial_codewords(codewords, self.classes_, n_bits, rng, distinct=True)
        self.codebook_ = self._make_codebook(codewords)
        self.n_bits_ = n_bits
        self.sharpness_ = 1.0
        if self.words is not None:
            self.sharpness_ = HammingWords.fitted(self.codewords_, self._unseen_posteriors()).sharpness

    def _make_codebook(self, given: CodewordsLike) -> Codebook:
        return given if isinstance(given, Codebook) else Codebook(self.codewords_, self.classes_)

    @property
    def words(self) -> HammingWords | None:
        """What codes of items stand for; None if this hasher compares them by Hamming distance alone."""
        return self._derived("words", self._make_words)

    def _make_words(self) -> HammingWords:
        return HammingWords(self.codewords_, self.sharpness_, self.codebook_.positions(self.classes_))

    def score(self, X: SamplesLike, y: LabelsLike = None) -> float:
        """Return the accuracy over labeled rows or, without labels, the mean log probability of the chosen class."""
        shares = self.predict_proba(X)
        labels = check_labels(y, len(shares))
        if not labels.labeled.any():
            return float(np.mean(np.log(shares.max(axis=1))))
        predicted = self.classes_[shares[labels.labeled].argmax(axis=1)]
        return float(np.mean(predicted == labels.classes[labels.index[labels.labeled]]))

    def encode(self, X: SamplesLike) -> BinaryCodes:
        """Return codes of queries for searches that only count bits, as packed bytes."""
        return super().encode(X) if self.words is None else self._query_codes(self.predict_proba(X))

    def encode_queries(self, X: SamplesLike) -> EncodedQueries:
        """Return queries for the index of :meth:`make_index`: their posteriors, and codes."""
        if self.words is None:
            return super().encode_queries(X)
        posteriors = self.predict_proba(X)
        return EncodedQueries(self._query_codes(posteriors), posteriors, numbers=self.words.numbers)

    def encode_database(self, X: SamplesLike, y: LabelsLike = None) -> BinaryCodes:
        """Return the codes of items: the codeword of the label where it is a class of the fit, else their own word.

        Parameters
        ----------
        X : samples as for ``fit``
        y : array of shape (n_samples,), default=None
            Labels of the items, where they are known. A label that the fit has not seen counts as none, and so does
            every label if the fit had none: clusters have no names.
        """
        if self.words is None:
            return super().encode_database(X, y)
        codes = BinaryCodes.from_signs(self.words.encode(self.predict_proba(X)), self.space_id_)
        return self.relabel(codes, y) if y is not None and "relabel" in self.supports else codes

    def encode_left_out(self, X: SamplesLike) -> BinaryCodes:
        """Return the codes of the rows of the fit as items without labels, each of the posterior without itself."""
        if self.words is None:
            return super().encode_left_out(X)
        return BinaryCodes.from_signs(self.words.encode(self.training_proba(X)), self.space_id_)

    @available_if(supported("relabel"))
    def relabel(self, codes: BinaryCodes, y: LabelsLike) -> BinaryCodes:
        """Return the codes with the codewords of these labels; without a known label, a code stays as it is."""
        words = self.words
        if words is None:
            return super().relabel(codes, y)
        columns = check_labels(y, len(codes)).positions_in(self.classes_)
        packed = codes.packed.copy()
        packed[columns >= 0] = BinaryCodes.from_signs(self.codewords_).packed[columns[columns >= 0]]
        known = np.where(columns >= 0, columns, words.columns_of(codes))
        return words.with_labels(replace(codes, packed=packed), known)

    def _query_codes(self, posteriors: np.ndarray) -> BinaryCodes:
        assert self.words is not None
        return BinaryCodes.from_signs(self.words.encode_queries(posteriors), self.space_id_)

    def _item_codes(self, posteriors: np.ndarray, columns: np.ndarray) -> BinaryCodes:
        """Return the codes of items with these posteriors, and of these classes where ``columns`` is not -1."""
        assert self.words is not None
        codes = BinaryCodes.from_signs(self.words.encode_items(posteriors, columns), self.space_id_)
        return self.words.with_labels(codes, columns)
