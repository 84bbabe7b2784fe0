"""The class field of a code: the number of a class in as few bits as possible."""

from __future__ import annotations

import warnings
from typing import Any

from ..codebooks import Codebook
from ..index.hybrid import MAX_CLASS_BITS

__all__ = ["class_numbers", "n_class_bits", "n_digits"]


def n_digits(n_values: int) -> int:
    """Return how many binary digits count this many values: ceil(log2 n).

    >>> [n_digits(n) for n in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (n_values - 1).bit_length()


def n_class_bits(n_classes: int, n_bits: int) -> int:
    """Return the length of the class field in codes of ``n_bits``; warn if it cannot tell all classes apart."""
    needed = max(1, n_digits(n_classes))
    if needed > MAX_CLASS_BITS:
        raise ValueError(f"There are {n_classes:,} classes; a class field holds at most {1 << MAX_CLASS_BITS:,}.")
    if needed > n_bits:
        warnings.warn(
            f"n_bits is {n_bits}; {n_classes} classes need {needed} bits, so several share a class field. "
            f"Use at least {needed + 1} bits.",
            UserWarning,
            stacklevel=5,
        )
    return min(needed, n_bits)


def class_numbers(class_hasher: Any) -> Codebook:
    """Return the codebook in which the place of a class is its number; reserved words keep numbers for classes to come.

    It is that of the class hasher, whatever its words are, or else one of the shortest words.
    """
    return class_hasher.codebook_ if hasattr(class_hasher, "codebook_") else Codebook.numbered(class_hasher.classes_)
