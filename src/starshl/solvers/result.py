"""What a dual SVM solver returns, and when that is good enough."""

from dataclasses import dataclass

import numpy as np

__all__ = ["ACCEPTED_VIOLATION", "DualSolution"]

# In tolerances. LIBSVM checks its own running gradient, so its violation may be a little above what it was asked for.
ACCEPTED_VIOLATION = 2.0


@dataclass(frozen=True, slots=True)
class DualSolution:
    """The solution of one bit's SVM: f(x) = sum_n coefficients[n] k(x_n, x) + intercept."""

    coefficients: np.ndarray
    intercept: float
    violation: float
    n_iter: int
    converged: bool
