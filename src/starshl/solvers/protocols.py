"""What the descent asks of a kernel bank and of an SVM solver, checked before it runs."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._memory import Scratch
from .result import DualSolution

__all__ = ["KernelBank", "SvmSolver", "require_parts"]


class KernelBank(Protocol):
    """All kernels between all training rows."""

    n_rows: int
    n_kernels: int
    dtype: np.dtype
    scratch: Scratch

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over those given in rising order."""
        ...

    def take(self, rows: np.ndarray) -> KernelBank:
        """Return a bank of some of the rows."""
        ...

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        ...

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0) -> np.ndarray:
        """Return K_m c for every row c of coefficients and every kernel, shape (n, n_kernels, n_rows)."""
        ...


class SvmSolver(Protocol):
    """A solver of one bit's SVM."""

    tol: float

    def solve(
        self,
        K: np.ndarray,
        y: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray | None = None,
        tol: float | None = None,
    ) -> DualSolution:
        """Return the maximizer of the dual within a KKT violation of ``tol``."""
        ...


_PARTS = {
    "bank": ("n_rows", "n_kernels", "dtype", "scratch", "combine", "take", "quadratic_forms", "expand"),
    "svm": ("tol", "solve"),
}


def require_parts(bank: KernelBank, svm: SvmSolver) -> None:
    """Refuse a bank or a solver that lacks something the descent will use."""
    for role, part in (("bank", bank), ("svm", svm)):
        missing = [name for name in _PARTS[role] if not hasattr(part, name)]
        if missing:
            raise TypeError(
                f"The {role} is a {type(part).__name__} without {', '.join(missing)}. Block descent needs "
                f"{', '.join(_PARTS[role])}; see starshl.solvers.protocols."
            )
