"""Rejection: predictions that may say "none of these"."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._threads import using_threads
from .._types import SamplesLike
from .._validation import check_number
from .expansion import Expansion
from .novelty import NoveltyRule, with_further_rows
from .samples import Samples

__all__ = ["Rejection", "check_reject", "marked_labels"]


class Rejection:
    """What a hasher with classes needs to recognize rows that belong to none of them.

    Attributes
    ----------
    novelty_weight_, novelty_neighbors_, novelty_units_, novelty_calibration_ : see
        :class:`starshl.models.novelty.NoveltyRule`
    novelty_rows_, novelty_samples_, novelty_coef_, novelty_intercept_ : if the hasher has no class scores, further
        rows to be compared with, and class scores over the support rows and these
    """

    if TYPE_CHECKING:
        n_jobs: int | None
        classes_: np.ndarray
        novelty_rows_: np.ndarray
        novelty_samples_: Any
        novelty_coef_: np.ndarray
        novelty_intercept_: np.ndarray

        @property
        def _expansion(self) -> Expansion: ...

        def _read(self, X: SamplesLike) -> Samples: ...

    @abstractmethod
    def _predicted_index(self, X: SamplesLike) -> np.ndarray:
        """Return the number of the class of each sample."""

    @property
    def _class_expansion(self) -> Expansion:
        """Class scores over the support rows, with kernel weights that all of them share."""
        own = self._expansion
        if not hasattr(self, "novelty_rows_"):  # the functions of the hasher are class scores already
            return own
        everything = with_further_rows(own, self.novelty_rows_, self.novelty_samples_)
        coefficients, intercept = self.novelty_coef_, self.novelty_intercept_
        return replace(everything, weights=own.mean_weights, coefficients=coefficients, intercept=intercept)

    def predict(self, X: SamplesLike, reject: float | None = None) -> np.ndarray:
        """Return the class of each sample.

        Parameters
        ----------
        X : samples as for ``fit``
        reject : float, default=None
            Answer "none of these" where :meth:`novelty` is at least 1 - reject: of samples of known classes, about
            this share is rejected. The answer is what marks unlabeled rows in y: -1 among integers, NaN among floats,
            the empty text among strings, None among objects. None rejects nothing.
        """
        reject = None if reject is None else check_reject(reject)
        index = self._predicted_index(X)
        labels = self.classes_[index]
        return labels if reject is None else marked_labels(labels, self.novelty(X) >= 1.0 - reject)

    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how unlike all training rows each sample is, from 0 to 1, shape (n,).

        It is the share of training rows that look more familiar, each of them compared with the others: a new sample
        of a known class is above .95 about once in twenty times, and one of another class more often than not. The
        measure weighs what class scores leave unexplained against the distance to the nearest training rows under the
        learned kernel. The weight and the number of neighbors are those that work best on training rows when one class
        after the other is left out.
        """
        check_is_fitted(self)
        if not hasattr(self, "novelty_calibration_"):
            raise ValueError(
                "This hasher was compressed and no longer has its training rows, which novelty compares samples with. "
                "Use the hasher that it was made from."
            )
        with using_threads(self.n_jobs):
            return NoveltyRule.of(self).shares(self._read(X), self._class_expansion)


def check_reject(reject: object) -> float:
    """Return the share of known samples that may be rejected as a float."""
    share = check_number(reject, "reject", low=0)
    if share > 1:
        raise ValueError(f"reject is {share:g}; it must be a share from 0 to 1, such as 0.05.")
    return share


def marked_labels(labels: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """Return labels with the mark of unlabeled rows where they are rejected.

    Examples
    --------
    >>> marked_labels(np.array([3, 4]), np.array([False, True])).tolist()
    [3, -1]
    >>> marked_labels(np.array(["a", "b"]), np.array([False, True])).tolist()
    ['a', '']
    """
    marks: dict[str, Any] = {"i": -1, "f": np.nan, "U": "", "S": b""}
    if labels.dtype.kind == "u":
        labels = labels.astype(np.int64)
    elif labels.dtype.kind not in marks:
        labels = labels.astype(object)
    else:
        labels = labels.copy()
    labels[rejected] = marks.get(labels.dtype.kind)
    return labels
