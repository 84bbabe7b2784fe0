"""Signs, bits and bytes: the one place where bit order, padding and the sign of zero are decided."""

from __future__ import annotations

from .binary import BinaryCodes, signs_of
from .codebook import Codebook
from .codewords import hadamard_matrix, minimum_distance, random_codewords, separated_codewords

__all__ = [
    "BinaryCodes",
    "Codebook",
    "hadamard_matrix",
    "minimum_distance",
    "random_codewords",
    "separated_codewords",
    "signs_of",
]
