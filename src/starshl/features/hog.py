"""Histograms of oriented gradients: the shapes in a picture, whatever its brightness and contrast."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._threads import run_all, tiles
from .._validation import check_choice
from ._picture_loops import fill_hog

__all__ = ["hog_features", "n_hog_features"]

N_ORIENTATIONS, CELLS_PER_BLOCK = 9, 2  # Dalal and Triggs 2005 found these best
_TILE = 256  # pictures that one thread does at a time


def n_hog_features(height: int, width: int, cell: int) -> int:
    """Return how many features a picture has in cells of so many pixels; none if it has fewer than 2 x 2 cells.

    Examples
    --------
    >>> n_hog_features(28, 28, 7)  # 3 x 3 blocks of 2 x 2 cells of 9 orientations
    324
    """
    blocks = [max(0, side // cell - CELLS_PER_BLOCK + 1) for side in (height, width)]
    return blocks[0] * blocks[1] * CELLS_PER_BLOCK**2 * N_ORIENTATIONS


def hog_features(pictures: np.ndarray, cell: int, n_jobs: int | None = None, *, votes: str = "shared") -> np.ndarray:
    r"""Return histograms of oriented gradients, shape (n, n_features), float32 (Dalal and Triggs 2005).

    The gradient of a pixel, :math:`(I_{i+1,j} - I_{i-1,j}, I_{i,j+1} - I_{i,j-1})`, adds its length to the histogram
    of its cell of ``cell`` x ``cell`` pixels, over nine orientations of 20 degrees that do not know its sign; of
    several channels, the longest gradient counts. All blocks of 2 x 2 cells are divided by their length, cut off at
    .2, and divided by their length again.

    Parameters
    ----------
    pictures : array of shape (n, height, width, n_channels), from 0 to 1
    cell : int
    n_jobs : number of threads
    votes : {"shared", "whole"}, default="shared"
        Where the length of a gradient goes. "shared": to the nearest two orientations in the nearest four cells, in
        proportion to how near they are, as in the paper; on MNIST and CIFAR-10 this leaves a fifth fewer training rows
        in the wrong class. "whole": to one cell and orientation; pixels beyond the last whole cell are left out. This
        equals ``skimage.feature.hog``.
    """
    check_choice(votes, "votes", ("shared", "whole"))
    n_pictures, height, width, _ = pictures.shape
    features = np.empty((n_pictures, n_hog_features(height, width, cell)), dtype=np.float32)

    def fill(tile: slice) -> None:
        block = np.ascontiguousarray(pictures[tile], dtype=np.float64)
        fill_hog(block, N_ORIENTATIONS, cell, CELLS_PER_BLOCK, votes == "shared", features[tile])

    run_all([partial(fill, tile) for tile in tiles(n_pictures, _TILE)], n_jobs)
    return features
