"""Any Python function of two samples as a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .base import Kernel, KernelSamples

__all__ = ["CallableKernel", "KernelFunction"]

KernelFunction: TypeAlias = Callable[[Any, Any], Any]
"""A function of two samples, or of two blocks of them."""


class CallableKernel(Kernel):
    """A kernel given as a function, on samples of any type.

    The function is either ``k(x, z) -> float`` on two samples or ``k(A, B) -> (len(A), len(B)) array`` on two
    blocks of samples (faster); a first call tells which one it is.
    """

    on_vectors: ClassVar[bool] = False

    def __init__(self, function: KernelFunction):
        self.function = function
        self._takes_blocks: bool | None = None

    def fit(self, samples: KernelSamples, sample_weight: np.ndarray | None = None) -> CallableKernel:
        fitted = CallableKernel(self.function)
        fitted._takes_blocks = _takes_blocks(self.function, samples)
        return fitted

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        if self._takes_blocks:
            return np.asarray(self.function(A, B), dtype=np.float64)
        return np.array([[self.function(a, b) for b in B] for a in A], dtype=np.float64).reshape(len(A), len(B))

    def gram(self, samples: KernelSamples) -> np.ndarray:
        if self._takes_blocks:
            return self(samples, samples)
        n_samples = len(samples)
        matrix = np.empty((n_samples, n_samples))
        for i in range(n_samples):
            for j in range(i + 1):
                matrix[i, j] = matrix[j, i] = self.function(samples[i], samples[j])
        return matrix


def _takes_blocks(function: KernelFunction, samples: KernelSamples) -> bool:
    """Tell a function of blocks from one of pairs: two overlapping calls must fit and agree."""
    try:
        block = np.asarray(function(samples[:3], samples[:2]), dtype=np.float64)
        one = np.asarray(function(samples[1:2], samples[:1]), dtype=np.float64)
    except Exception:  # a function of pairs may fail on blocks in any way it likes
        return False
    return (
        block.shape == (min(3, len(samples)), min(2, len(samples)))
        and one.shape == (1, 1)
        and bool(np.isclose(block[1, 0], one[0, 0], rtol=1e-6, equal_nan=True))
    )
