"""What a dual SVM solver returns."""

from dataclasses import dataclass

import numpy as np

__all__ = ["DualSolution"]


@dataclass(frozen=True, slots=True)
class DualSolution:
    """The solution of one bit's SVM: f(x) = sum_n coefficients[n] k(x_n, x) + intercept."""

    coefficients: np.ndarray
    products: np.ndarray  # kernel matrix times coefficients
    intercept: float
    violation: float
    n_iter: int
    converged: bool
