"""Kernel: what a Mercer kernel must offer to be used in a bank."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.sparse import csr_array

__all__ = ["Kernel", "KernelSamples", "MedianKernel"]

KernelSamples: TypeAlias = Sequence[Any] | np.ndarray | csr_array
"""Samples that a kernel compares: rows of a matrix, or objects of any type."""


class Kernel(ABC):
    """A positive semi-definite function of two samples, evaluated on blocks of samples.

    A kernel that has nothing to learn writes ``__call__`` only. A data-dependent one also writes ``fit``,
    which sees all training rows, labeled or not, and returns the kernel to evaluate; ``fit`` never changes
    the object it is called on, so one object can serve several estimators.

    Kernels of this package are frozen dataclasses whose fields are numbers, strings and arrays: a model
    file holds the fields and the class name.
    """

    on_vectors: ClassVar[bool] = True
    """Whether samples are rows of a matrix of finite numbers; otherwise they are passed on as they came."""

    takes_sparse: ClassVar[bool] = False
    """Whether rows may also come as a ``scipy.sparse.csr_array``."""

    largest_diagonal: ClassVar[float | None] = None
    """The supremum of k(x, x) over the sample space, where it is known: Theorem 1 needs it."""

    def fit(self, samples: KernelSamples, sample_weight: np.ndarray | None = None) -> Kernel:
        """Return a kernel that is ready to evaluate."""
        return self

    @abstractmethod
    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        """Return k(a, b) for all a in A and b in B, shape (len(A), len(B))."""

    def gram(self, samples: KernelSamples) -> np.ndarray:
        """Return k between all samples, shape (n, n)."""
        return self(samples, samples)

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        """Return k(x, x) for each sample, shape (n,)."""
        return np.array([self(samples[i : i + 1], samples[i : i + 1])[0, 0] for i in range(len(samples))])


class MedianKernel(Kernel):
    """A kernel on vectors that is measured in median distances between training rows.

    ``fit`` takes the median, so that the kernels of a bank share one; without it, each computes its own.
    """

    @abstractmethod
    def fit(
        self, samples: KernelSamples, sample_weight: np.ndarray | None = None, median: float | None = None
    ) -> Kernel: ...
