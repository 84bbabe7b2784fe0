"""Codes as signs, bits and bytes, and codewords: bit order, padding and the sign of zero are decided here."""

from __future__ import annotations

from .binary import BinaryCodes, signs_of
from .codebook import Codebook
from .codewords import hadamard_matrix, minimum_distance, random_codewords, separated_codewords
from .hamming_words import HammingWords
from .queries import EncodedQueries
from .score_rule import ScoreRule
from .word_dictionary import WordDictionary

__all__ = [
    "BinaryCodes",
    "Codebook",
    "EncodedQueries",
    "HammingWords",
    "ScoreRule",
    "WordDictionary",
    "hadamard_matrix",
    "minimum_distance",
    "random_codewords",
    "separated_codewords",
    "signs_of",
]
