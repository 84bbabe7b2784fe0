"""Codewords far apart, and the codebook that says which class has which."""

from .codebook import Codebook
from .separated import binary_words, hadamard_matrix, minimum_distance, random_codewords, separated_codewords

__all__ = ["Codebook", "binary_words", "hadamard_matrix", "minimum_distance", "random_codewords", "separated_codewords"]
