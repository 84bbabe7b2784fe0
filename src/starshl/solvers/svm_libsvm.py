"""The SVM of one bit through LIBSVM: the oracle behind the same signature as our own solver."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

from ._svm_loops import subtract_products, violation_of
from .objective import box
from .result import ACCEPTED_VIOLATION, DualSolution

__all__ = ["LibSVM"]


class LibSVM:
    """scikit-learn's ``SVC(kernel="precomputed")`` as a dual solver; it cannot start from an earlier solution."""

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
        machine = SVC(kernel="precomputed", C=1.0, tol=tol, cache_size=500).fit(K, y, sample_weight=upper)
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
