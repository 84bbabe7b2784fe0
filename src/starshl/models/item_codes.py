"""Codes of items whose labels are known: the codewords of their classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._validation import PartialLabels
from ..codes import BinaryCodes

__all__ = ["known_labels", "with_codewords"]


def known_labels(labels: PartialLabels, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which items have a label among the classes of a fit, and the index of the class for those."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    place_of = np.array([places.get(label, -1) for label in labels.classes.tolist()] + [-1])
    index = place_of[labels.index]  # -1, unlabeled, takes the last entry
    return index >= 0, index[index >= 0]


def with_codewords(codes: BinaryCodes, rows: np.ndarray, codewords: np.ndarray) -> BinaryCodes:
    """Return the codes with those of some rows, True in ``rows``, replaced by codewords."""
    packed = codes.packed.copy()
    packed[rows] = BinaryCodes.from_signs(codewords).packed
    return replace(codes, packed=packed)
