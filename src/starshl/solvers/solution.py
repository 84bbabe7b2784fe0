"""Where a descent starts and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Solution", "Start"]


@dataclass(frozen=True, slots=True)
class Start:
    """Codewords (G, n_bits), the codeword index of each row, and kernel weights (n_bits, n_kernels)."""

    codewords: np.ndarray
    assignments: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, slots=True)
class Solution:
    """The hash functions of all bits and how the descent went.

    ``coefficients`` (n_bits, n_rows) and ``weights`` belong together; ``scores`` (n_rows, n_bits) are their values on
    the training rows. Histories hold one entry after sweep 0, each sweep and each last pass.
    """

    codewords: np.ndarray
    assignments: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    penalty: np.ndarray
    violation: np.ndarray
    is_constant: np.ndarray
    objective: np.ndarray
    surrogate: np.ndarray
    distortion: np.ndarray
    n_iter: int
    n_moved: int
    n_flipped: int
    n_dropped: int
    converged: bool
