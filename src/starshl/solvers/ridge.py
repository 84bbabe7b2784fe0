"""Ridge regression of many targets at once: factor once, then solve for each new set of codes."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._threads import single_threaded_blas
from ..linalg import gram, project

__all__ = ["FeatureRidge", "KernelRidge", "least_squares", "ridge_solve", "share_of_diagonal"]

_EQUAL_COLUMNS_RIDGE = 1e-6  # share of the mean square of a feature: just enough where features are equal


def share_of_diagonal(share: float, diagonal: np.ndarray) -> float:
    r"""Return a penalty :math:`\rho` in the units of the problem: a share of the mean diagonal it is added to.

    The same share then means the same for any number of rows and any unit of the features.

    Examples
    --------
    >>> share_of_diagonal(0.1, np.array([1.0, 3.0]))
    0.2
    """
    mean = float(np.mean(diagonal))
    return share * (mean if mean > 0 else 1.0)


def ridge_solve(A: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    r"""Return :math:`\arg\min_W \|B - A W\|^2 + \rho\|W\|^2 = (A^\top A + \rho I)^{-1} A^\top B`."""
    with single_threaded_blas():
        return cho_solve(_ridged_factor(gram(A), ridge), gram(A, B))


def least_squares(features: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of shape (n_targets, n_features) and intercepts of least squares; features may be equal."""
    # In units of the features, which may be of any size.
    size = np.sqrt(np.mean(np.square(features, dtype=np.float64))) or 1.0
    regression = FeatureRidge(features / size, _EQUAL_COLUMNS_RIDGE * len(features))
    coefficients, intercept = regression.split(regression.solve(targets))
    return coefficients / size, intercept


class FeatureRidge:
    r"""Regress codes H on features with a constant one appended.

    .. math:: \min_P\ \|H - \Phi P\|^2 + \rho \|P\|^2, \qquad \Phi = [\text{features}, 1]

    Parameters
    ----------
    features : array of shape (n_samples, n_features), float64
    ridge : float, :math:`\rho > 0`
    """

    def __init__(self, features: np.ndarray, ridge: float):
        self.ridge = ridge
        self._design = np.hstack([features, np.ones((len(features), 1))])
        with single_threaded_blas():
            self._factor = _ridged_factor(gram(self._design), ridge)

    def solve(self, H: np.ndarray) -> np.ndarray:
        """Return the minimizer P, shape (n_features + 1, n_bits)."""
        with single_threaded_blas():
            return cho_solve(self._factor, gram(self._design, H))

    def predict(self, P: np.ndarray) -> np.ndarray:
        """Return the fitted values, shape (n_samples, n_bits)."""
        return project(self._design, P.T)

    def loss(self, H: np.ndarray, P: np.ndarray) -> float:
        """Return the objective at H and P."""
        return float(np.sum((H - self.predict(P)) ** 2) + self.ridge * np.sum(P**2))

    def split(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (n_bits, n_features) and intercepts of shape (n_bits,)."""
        return P[:-1].T, P[-1]


class KernelRidge:
    r"""Regress codes H on all rows through a kernel, whose constant 1 makes room for an intercept.

    .. math:: \min_P\ \|H - K P\|^2 + \rho\,\mathrm{tr}(P^\top K P), \qquad K = \text{gram} + 1,

    solved by :math:`P = (K + \rho I)^{-1} H`; O(n^3) to factor.

    Parameters
    ----------
    kernel : array of shape (n_samples, n_samples), float64, positive semidefinite
    ridge : float, :math:`\rho > 0`
    """

    def __init__(self, kernel: np.ndarray, ridge: float):
        self.ridge = ridge
        self._design = kernel + 1.0
        with single_threaded_blas():
            self._factor = _ridged_factor(self._design.copy(), ridge)

    def size_of(self) -> int:
        """Return the bytes that its matrices take."""
        return self._design.nbytes + self._factor[0].nbytes

    def solve(self, H: np.ndarray) -> np.ndarray:
        """Return the minimizer P, shape (n_samples, n_bits)."""
        with single_threaded_blas():
            return cho_solve(self._factor, H)

    def predict(self, P: np.ndarray) -> np.ndarray:
        """Return the fitted values, shape (n_samples, n_bits)."""
        return project(self._design, P.T)

    def loss(self, H: np.ndarray, P: np.ndarray) -> float:
        """Return the objective at H and P."""
        fitted = self.predict(P)
        return float(np.sum((H - fitted) ** 2) + self.ridge * np.sum(P * fitted))

    def split(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (n_bits, n_samples) and intercepts of shape (n_bits,)."""
        return P.T, P.sum(axis=0)


def _ridged_factor(matrix: np.ndarray, ridge: float) -> tuple[np.ndarray, bool]:
    matrix[np.diag_indices_from(matrix)] += ridge
    return cho_factor(matrix, overwrite_a=True, check_finite=False)
