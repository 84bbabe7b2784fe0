"""A string kernel: shared substrings, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from .._validation import check_integer
from .base import Kernel, KernelSamples

__all__ = ["SpectrumKernel"]


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
