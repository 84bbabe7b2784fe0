"""Between classes and codes: the class of the nearest codeword, and the codeword of a known class."""

from __future__ import annotations

import numpy as np

from .._validation import PartialLabels
from ..codes import BinaryCodes
from ..solvers import nearest_codewords

__all__ = ["known_classes", "nearest_classes", "with_codewords"]


def nearest_classes(scores: np.ndarray, codewords: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return class indices; classes that share a codeword are answered by the most frequent of them.

    ``counts`` holds the weight of each class in training.
    """
    _, group = np.unique(codewords, axis=0, return_inverse=True)
    group = group.ravel()
    most_frequent_first = np.lexsort((np.arange(len(group)), -counts))
    speaker = np.empty(len(group), dtype=np.int64)
    speaker[group[most_frequent_first[::-1]]] = most_frequent_first[::-1]
    return speaker[group[nearest_codewords(scores, codewords)]]


def known_classes(classes: np.ndarray, labels: PartialLabels) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have a label among ``classes``, and its place there for each of those."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    place_of = np.array([places.get(label, -1) for label in labels.classes.tolist()] + [-1])
    index = place_of[labels.index]  # -1, unlabeled, takes the last entry
    return index >= 0, index[index >= 0]


def with_codewords(codes: BinaryCodes, rows: np.ndarray, codewords: np.ndarray) -> BinaryCodes:
    """Return the codes with those of some rows replaced."""
    packed = codes.packed.copy()
    packed[rows] = BinaryCodes.from_signs(codewords).packed
    return BinaryCodes(packed, codes.n_bits)
