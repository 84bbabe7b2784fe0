"""A map of codewords: points in the plane whose distances are about their Hamming distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..linalg import positive_peaks
from .layout import in_unit_square

__all__ = ["map_codewords"]


def map_codewords(words: ArrayLike) -> np.ndarray:
    """Return a place in the unit square for each codeword, float32 of shape (n_words, 2).

    Classical multidimensional scaling of Hamming distances. Between rows of -1 and +1 these are a quarter of the
    squared Euclidean distances, so the places are the first two principal components of the words.

    Parameters
    ----------
    words : array of -1 and +1 of shape (n_words, n_bits)

    Examples
    --------
    >>> places = map_codewords([[1, 1, 1, 1], [1, 1, 1, -1], [-1, -1, -1, -1]])
    >>> np.linalg.norm(places[0] - places[1]) < np.linalg.norm(places[0] - places[2])
    np.True_
    """
    signs = np.asarray(words, dtype=np.float64)
    if signs.ndim != 2 or 0 in signs.shape or not np.isin(signs, (-1, 1)).all():
        raise ValueError(
            f"words has shape {signs.shape}, or entries other than -1 and +1; it must be (n_words, n_bits), with one "
            "word and one bit or more."
        )
    centered = signs - signs.mean(axis=0)
    left, singular, _ = np.linalg.svd(centered, full_matrices=False)
    places = np.zeros((len(signs), 2))
    n_axes = min(2, len(singular))
    places[:, :n_axes] = (positive_peaks(left[:, :n_axes].T) * singular[:n_axes, None]).T
    return in_unit_square(places)
