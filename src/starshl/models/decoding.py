"""From scores to classes: the class of the nearest codeword."""

from __future__ import annotations

import numpy as np

from ..solvers import nearest_codewords

__all__ = ["nearest_classes"]


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
