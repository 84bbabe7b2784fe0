"""Codes of items whose labels are known: the codewords of their classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..codes import BinaryCodes

__all__ = ["with_codewords"]


def with_codewords(codes: BinaryCodes, rows: np.ndarray, codewords: np.ndarray) -> BinaryCodes:
    """Return the codes with those of some rows, True in ``rows``, replaced by codewords."""
    packed = codes.packed.copy()
    packed[rows] = BinaryCodes.from_signs(codewords).packed
    return replace(codes, packed=packed)
