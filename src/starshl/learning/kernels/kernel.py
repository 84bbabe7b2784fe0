"""Mercer kernels on samples of any type: the contract, functions as kernels, strings, and checks of their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from ..._common.validation import check_integer

KernelSamples: TypeAlias = Sequence[Any] | np.ndarray | csr_array
"""Samples that a kernel compares: rows of a matrix, or objects of any type."""
KernelFunction: TypeAlias = Callable[[Any, Any], Any]
"""A function of two samples, or of two blocks of them."""
_EIGENVALUE_ROWS = 300  # of a kernel matrix whose eigenvalues are checked


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


@dataclass(frozen=True)
class SpectrumKernel(Kernel):
    """The cosine between two strings' counts of substrings of 1 to ``length`` characters.

    The blended spectrum kernel of Leslie, Eskin and Noble (2002) and Shawe-Taylor and Cristianini (2004),
    normalized. An empty string has kernel 0 with everything.

    Examples
    --------
    >>> SpectrumKernel(2)(["ab"], ["ab", "a", "cd"]).round(3).tolist()
    [[1.0, 0.577, 0.0]]
    """

    length: int = 3
    on_vectors: ClassVar[bool] = False
    largest_diagonal: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_integer(self.length, "length", low=1)

    def __call__(self, A: KernelSamples, B: KernelSamples) -> np.ndarray:
        vocabulary: dict[str, int] = {}
        counts_a, counts_b = (self._counts(strings, vocabulary) for strings in (A, B))
        counts_a.resize((len(A), len(vocabulary)))
        return (_unit_rows(counts_a) @ _unit_rows(counts_b).T).toarray()

    def diagonal(self, samples: KernelSamples) -> np.ndarray:
        return np.array([float(len(sample) > 0) for sample in samples])

    def _counts(self, strings: KernelSamples, vocabulary: dict[str, int]) -> csr_array:
        values: list[int] = []
        columns: list[int] = []
        ends = [0]
        for string in strings:
            if not isinstance(string, str):
                raise ValueError(
                    f"A sample is of type {type(string).__name__}; SpectrumKernel compares strings. "
                    "Convert samples with str, or use another kernel."
                )
            counts = Counter(
                string[start : start + size]
                for size in range(1, self.length + 1)
                for start in range(len(string) - size + 1)
            )
            columns.extend(vocabulary.setdefault(part, len(vocabulary)) for part in counts)
            values.extend(counts.values())
            ends.append(len(values))
        return csr_array((np.array(values, dtype=np.float64), columns, ends), shape=(len(strings), len(vocabulary)))


def _unit_rows(counts: csr_array) -> csr_array:
    norms = np.sqrt(counts.power(2).sum(axis=1))
    scales = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return csr_array(counts.multiply(scales[:, None]))


def checked_block(kernel: Kernel, block: np.ndarray, n_rows: int, n_columns: int) -> np.ndarray:
    """Return kernel values, or say what is wrong with them."""
    block = np.asarray(block)
    if block.shape != (n_rows, n_columns):
        raise ValueError(
            f"{_name(kernel)} returned shape {block.shape} for {n_rows} and {n_columns} samples; "
            f"it must return ({n_rows}, {n_columns})."
        )
    if not np.isfinite(block).all():
        raise ValueError(f"{_name(kernel)} returned NaN or infinity; kernel values must be finite numbers.")
    return block


def _name(kernel: Kernel) -> str:
    function = getattr(kernel, "function", None)
    return f"The kernel {getattr(function, '__name__', type(kernel).__name__)!r}"


def is_built_in(kernel: Kernel) -> bool:
    """Tell whether a kernel is one of this package and can therefore be trusted to be one."""
    return type(kernel).__module__.startswith("starshl.") and not isinstance(kernel, CallableKernel)


def check_gram(gram: np.ndarray, name: str, rng: np.random.RandomState) -> None:
    """Refuse a kernel matrix of training rows that is not symmetric or not positive semi-definite.

    The eigenvalues are those of at most 300 random rows; a float32 matrix may be off by its rounding.
    """
    tolerance = 1e-7 if gram.dtype == np.float64 else 1e-5
    largest = float(np.abs(gram).max()) or 1.0
    asymmetry = float(np.abs(gram - gram.T).max()) / largest
    if asymmetry > tolerance:
        raise ValueError(
            f"{name} is not symmetric: entries differ from their mirror images by {asymmetry:.1e} of the largest "
            "one. A kernel must satisfy k(x, z) = k(z, x); use (K + K.T) / 2 if the difference is rounding."
        )
    rows = rng.permutation(len(gram))[:_EIGENVALUE_ROWS]
    eigenvalues = np.linalg.eigvalsh(gram[np.ix_(rows, rows)].astype(np.float64))
    if eigenvalues[0] < -tolerance * max(eigenvalues[-1], abs(eigenvalues[0])):
        raise ValueError(
            f"{name} is not positive semi-definite: on {len(rows)} rows its eigenvalues go from "
            f"{eigenvalues[0]:.2e} to {eigenvalues[-1]:.2e}. Use a Mercer kernel, or clip the negative "
            "eigenvalues of a precomputed one."
        )
