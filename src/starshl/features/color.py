"""Color histograms: which colors a picture has, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._threads import run_all, tiles
from ._picture_loops import fill_color

__all__ = ["COLOR_BINS", "GRAY_BINS", "color_features", "gray_features", "to_hsv"]

COLOR_BINS = (8, 4, 4)  # of hue, saturation and value; by leave-one-out on training pictures of CIFAR-10
GRAY_BINS = 16  # not tuned: gray levels are off by default
_TILE = 256  # pictures that one thread does at a time


def to_hsv(pictures: np.ndarray) -> np.ndarray:
    """Return hue, saturation and value of RGB pictures, (..., 3), all from 0 to 1 as in ``skimage.color.rgb2hsv``.

    Examples
    --------
    >>> to_hsv(np.array([0.0, 0.5, 0.0])).round(2).tolist()  # dark green
    [0.33, 1.0, 0.5]
    """
    value, least = pictures.max(axis=-1), pictures.min(axis=-1)
    spread = value - least
    saturation = np.divide(spread, value, out=np.zeros_like(value), where=value > 0)
    red, green, blue = np.moveaxis(pictures, -1, 0)
    # The largest channel tells the third of the color circle, the other two where in it.
    turns = np.select([value == red, value == green], [green - blue, blue - red], red - green)
    turns = np.divide(turns, spread, out=np.zeros_like(value), where=spread > 0)
    thirds = np.select([value == red, value == green], [0.0, 2.0], 4.0)
    hue = np.where(spread > 0, (turns + thirds) / 6.0 % 1.0, 0.0)
    return np.stack([hue, saturation, value], axis=-1)


def color_features(pictures: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the roots of the shares of pixels in 8 x 4 x 4 bins of hue, saturation and value, (n, 128), float32.

    Between the roots of histograms, Euclidean distances are Hellinger distances, which suit shares better.

    Parameters
    ----------
    pictures : array of shape (n, height, width, 3), red, green and blue from 0 to 1
    n_jobs : number of threads
    """

    def read(block: np.ndarray) -> np.ndarray:
        return to_hsv(block.reshape(len(block), -1, 3))

    return _histograms(pictures, read, COLOR_BINS, n_jobs)


def gray_features(pictures: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the roots of the shares of pixels in 16 bins of gray, (n, 16), float32; see :func:`color_features`."""

    def read(block: np.ndarray) -> np.ndarray:
        flat = block.reshape(len(block), -1)
        return np.stack([np.zeros_like(flat), np.zeros_like(flat), flat], axis=-1)

    return _histograms(pictures, read, (1, 1, GRAY_BINS), n_jobs)


def _histograms(
    pictures: np.ndarray, read: Callable[[np.ndarray], np.ndarray], bins: tuple[int, int, int], n_jobs: int | None
) -> np.ndarray:
    counts = np.zeros((len(pictures), int(np.prod(bins))), dtype=np.float64)

    def fill(tile: slice) -> None:
        fill_color(read(np.ascontiguousarray(pictures[tile], dtype=np.float64)), bins, counts[tile])

    run_all([partial(fill, tile) for tile in tiles(len(pictures), _TILE)], n_jobs)
    return np.sqrt(counts).astype(np.float32)
