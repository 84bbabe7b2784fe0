"""From scores to classes: that of the nearest codeword, and for training rows the label that was given."""

from __future__ import annotations

import numpy as np

from .._validation import PartialLabels
from ..solvers import nearest_codewords

__all__ = ["nearest_classes", "with_given_labels"]


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


def with_given_labels(predicted: np.ndarray, given: PartialLabels) -> np.ndarray:
    """Return the predicted labels with those that were given, also of classes whose rows all have weight zero.

    Without any given label, predictions are numbers of clusters and keep their type: texts of the length of y, which
    marks every row by the empty text, would cut them off.
    """
    labels: np.ndarray = predicted.astype(given.dtype if given.labeled.any() else predicted.dtype)
    labels[given.labeled] = given.classes[given.index[given.labeled]]
    return labels
