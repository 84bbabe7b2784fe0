"""The SVM of one bit (paper Eq. 7): by pairwise dual ascent, started from any earlier solution, or by LIBSVM.

The paper's dual has n_samples * n_codewords variables with upper bounds C * gamma; all but n_samples of them
are bounded by zero, so only those that belong to each sample's own codeword are ever built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._common.lazy import library
from ._svm_loops import ascend_pairs, subtract_products, violation_of
from .objective import box

sklearn_svm = library("sklearn.svm")
# In tolerances. LIBSVM checks its own running gradient, so its violation may be a little above what it was asked for.
ACCEPTED_VIOLATION = 2.0
# Up to these, a difference is rounding: between the sums of positive and negative coefficients, relative to one of
# them, and between a coefficient and its bound, relative to the distance of the two bounds.
_SUM_TOL = 1e-12
_BOUND_TOL = 1e-12


@dataclass(frozen=True, slots=True)
class DualSolution:
    """The solution of one bit's SVM: f(x) = sum_n coefficients[n] k(x_n, x) + intercept."""

    coefficients: np.ndarray
    intercept: float
    violation: float
    n_iter: int
    converged: bool


class PairwiseAscent:
    """Sequential minimal optimization with second-order choice of pairs and a warm start.

    Parameters
    ----------
    tol : float
        Largest KKT violation of the result.
    max_iter : int, default=10_000_000
        Steps after which the solver gives up.
    """

    def __init__(self, tol: float = 1e-3, *, max_iter: int = 10_000_000):
        self.tol = tol
        self.max_iter = max_iter

    def solve(
        self,
        K: np.ndarray,
        y: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray | None = None,
        tol: float | None = None,
    ) -> DualSolution:
        """Return the maximizer of y'eta - eta'K eta / 2 with 0 <= eta y <= upper and sum(eta) = 0.

        ``K`` is the (n, n) kernel matrix, ``y`` holds -1 and +1 (both must occur), ``upper`` is C times each
        row's weight, ``start`` an earlier eta for any labels and bounds, ``tol`` overrides the solver's own.
        """
        tol = self.tol if tol is None else tol
        y = np.asarray(y, dtype=np.float64)
        low, high = box(y, upper)
        eta = np.zeros(len(y)) if start is None else feasible_start(start, low, high)
        gradient = y.copy()
        subtract_products(K, eta, gradient)
        n_iter = ascend_pairs(K, gradient, eta, low, high, tol, self.max_iter)
        _snap_to_bounds(eta, low, high)
        violation, top, bottom = violation_of(gradient, eta, low, high)
        free = (eta > low) & (eta < high)
        intercept = gradient[free].mean() if free.any() else (top + bottom) / 2
        return DualSolution(eta, float(intercept), float(max(violation, 0.0)), int(n_iter), violation <= tol)


def feasible_start(eta: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the coefficients clipped to their bounds, the heavier side scaled down so that they sum to zero.

    A row whose label changed sign is clipped to zero, because its coefficient is then out of bounds.
    """
    eta = np.clip(eta, low, high)
    positive, negative = eta[eta > 0].sum(), -eta[eta < 0].sum()
    # Scaling by 1 - 1e-16 would pull every coefficient off its bound, and each would need a step to return.
    if abs(positive - negative) <= _SUM_TOL * positive:
        return eta
    if positive > negative:
        eta[eta > 0] *= negative / positive
    elif negative > positive:
        eta[eta < 0] *= positive / negative
    return eta


def _snap_to_bounds(eta: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Put coefficients on the bound they missed by rounding, in place.

    Such a coefficient counts as free and would decide the bias alone, at an end of the interval of best biases
    instead of its middle.
    """
    margin = _BOUND_TOL * (high - low)
    np.copyto(eta, low, where=eta - low <= margin)
    np.copyto(eta, high, where=high - eta <= margin)


class LibSVM:
    """scikit-learn's ``SVC(kernel="precomputed")``, the oracle of the other solver; it has no warm start."""

    def __init__(self, tol: float = 1e-3):
        self.tol = tol

    def solve(
        self,
        K: np.ndarray,
        y: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray | None = None,
        tol: float | None = None,
    ) -> DualSolution:
        """See :meth:`PairwiseAscent.solve`; ``start`` is ignored."""
        tol = self.tol if tol is None else tol
        K = np.asarray(K, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        # C = 1 and the bounds as weights, because LIBSVM multiplies the two.
        machine = sklearn_svm.SVC(kernel="precomputed", C=1.0, tol=tol, cache_size=500).fit(K, y, sample_weight=upper)
        eta = np.zeros(len(y))
        eta[machine.support_] = machine.dual_coef_[0]
        gradient = y.copy()
        subtract_products(K, eta, gradient)
        low, high = box(y, upper)
        violation, _, _ = violation_of(gradient, eta, low, high)
        return DualSolution(
            eta,
            float(machine.intercept_[0]),
            float(max(violation, 0.0)),
            int(machine.n_iter_[0]),
            violation <= ACCEPTED_VIOLATION * tol,
        )
