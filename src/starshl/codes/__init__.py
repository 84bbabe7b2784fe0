"""Signs, bits and bytes: the one place where bit order, padding and the sign of zero are decided."""

from __future__ import annotations

from .binary import BinaryCodes, check_space_id, make_space_id, n_bytes, signs_of
from .codebook import Codebook
from .codewords import binary_words, hadamard_matrix, minimum_distance, random_codewords, separated_codewords

__all__ = [
    "BinaryCodes",
    "Codebook",
    "binary_words",
    "check_space_id",
    "hadamard_matrix",
    "make_space_id",
    "minimum_distance",
    "n_bytes",
    "random_codewords",
    "separated_codewords",
    "signs_of",
]
