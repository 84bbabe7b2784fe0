"""Locality-sensitive hashing by signs of random projections (Charikar 2002)."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._validation import check_integer, check_rows
from ..base import BaseHasher

__all__ = ["LSHash"]


class LSHash(BaseHasher):
    r"""Hash by the side of random hyperplanes through the mean of the training rows.

    Two rows agree in a bit with probability :math:`1 - \angle(x - m, z - m)/\pi`, where m is the mean.

    Parameters
    ----------
    n_bits : int, default=32
    center : bool, default=True
        Subtract the training mean. Without it, non-negative data (pixels) get nearly equal codes.
    orthogonal : bool, default=False
        Make the directions orthogonal within blocks of at most n_features bits, which lowers the variance
        of the estimated angle (super-bit LSH).
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    mean_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.baselines import LSHash
    >>> X, _ = load_digits(return_X_y=True)
    >>> LSHash(16, random_state=0).fit_transform(X).shape
    (1797, 16)
    """

    def __init__(self, n_bits=32, *, center=True, orthogonal=False, random_state=None):
        self.n_bits = n_bits
        self.center = center
        self.orthogonal = orthogonal
        self.random_state = random_state

    def fit(self, X, y=None) -> LSHash:
        """Draw the hyperplanes; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        n_features = X.shape[1]
        self.mean_ = X.mean(axis=0) if self.center else np.zeros(n_features, X.dtype)
        directions = rng.standard_normal((n_bits, n_features))
        if self.orthogonal:
            blocks = range(0, n_bits, n_features)
            directions = np.vstack([_orthonormal_rows(directions[b : b + n_features]) for b in blocks])
        self.components_ = directions.astype(X.dtype)
        return self

    def decision_function(self, X) -> np.ndarray:
        """Return the signed distances to the hyperplanes, shape (n_samples, n_bits)."""
        check_is_fitted(self)
        X = check_rows(self, X, fitting=False)
        return (X - self.mean_) @ self.components_.T


def _orthonormal_rows(block: np.ndarray) -> np.ndarray:
    q, r = np.linalg.qr(block.T)
    # The signs of R's diagonal belong to the draw: with them the rows are uniform on the sphere.
    return (q * np.where(np.diag(r) >= 0, 1.0, -1.0)).T
