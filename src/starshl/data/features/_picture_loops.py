"""Compiled loops of histograms of oriented gradients and of color histograms; see ``hog.py`` and ``color.py``."""

from __future__ import annotations

import numpy as np
from numba import njit

CLIP = 0.2  # of a normalized block, from Dalal and Triggs 2005 ("L2-Hys")
EPSILON = 1e-5  # that keeps blocks without gradients from dividing by zero


@njit(cache=True, nogil=True)
def fill_hog(pictures, n_orientations, turn, cell, per_block, shared, out):
    """Fill ``out`` with the features of pictures, (n, height, width, n_channels).

    Orientations make up a ``turn`` in radians, half a circle or a whole one; ``shared`` votes are interpolated.
    """
    n_pictures, height, width, _ = pictures.shape
    cells = np.empty((height // cell, width // cell, n_orientations))
    for n in range(n_pictures):
        cells[:] = 0.0
        for i in range(height if shared else len(cells) * cell):
            for j in range(width if shared else cells.shape[1] * cell):
                down, across, length = _gradient(pictures[n], i, j)
                if length > 0.0:
                    # In orientations, from 0 to their number.
                    angle = (np.arctan2(down, across) / turn) % 1.0 * n_orientations
                    if shared:
                        _share_out(cells, (i + 0.5) / cell - 0.5, (j + 0.5) / cell - 0.5, angle - 0.5, length)
                    else:
                        cells[i // cell, j // cell, min(int(angle), n_orientations - 1)] += length
        cells /= cell * cell
        _fill_blocks(cells, per_block, out[n])


@njit(cache=True, nogil=True)
def _gradient(picture, i, j):
    """Return the longest gradient of all channels at a pixel; pixels at the border have none across it."""
    height, width, n_channels = picture.shape
    down, across, longest = 0.0, 0.0, 0.0
    for channel in range(n_channels):
        d = picture[i + 1, j, channel] - picture[i - 1, j, channel] if 0 < i < height - 1 else 0.0
        a = picture[i, j + 1, channel] - picture[i, j - 1, channel] if 0 < j < width - 1 else 0.0
        squared = a * a + d * d
        if squared > longest:
            down, across, longest = d, a, squared
    return down, across, np.sqrt(longest)


@njit(cache=True, nogil=True)
def _share_out(cells, i, j, angle, length):
    """Share a vote among the cells and orientations around it, in proportion to how near they are."""
    n_down, n_across, n_orientations = cells.shape
    top, left, first = int(np.floor(i)), int(np.floor(j)), int(np.floor(angle))
    for row in range(max(top, 0), min(top + 2, n_down)):
        by_row = length * (1.0 - abs(i - row))
        for column in range(max(left, 0), min(left + 2, n_across)):
            by_cell = by_row * (1.0 - abs(j - column))
            cells[row, column, first % n_orientations] += by_cell * (1.0 - (angle - first))
            cells[row, column, (first + 1) % n_orientations] += by_cell * (angle - first)


@njit(cache=True, nogil=True)
def _fill_blocks(cells, per_block, out):
    """Write all blocks of neighboring cells, normalized, clipped and normalized again."""
    n_down, n_across, n_orientations = cells.shape
    size, start = per_block * per_block * n_orientations, 0
    for i in range(n_down - per_block + 1):
        for j in range(n_across - per_block + 1):
            block = cells[i : i + per_block, j : j + per_block].copy().reshape(-1)
            block /= np.sqrt(np.sum(block**2) + EPSILON**2)
            block = np.minimum(block, CLIP)
            block /= np.sqrt(np.sum(block**2) + EPSILON**2)
            out[start : start + size] = block
            start += size


@njit(cache=True, nogil=True)
def fill_color(pictures, bins, out):
    """Count the pixels of each picture, (n, n_pixels, 3) in hue, saturation and value, by bins of the three."""
    n_pictures, n_pixels, _ = pictures.shape
    for n in range(n_pictures):
        for p in range(n_pixels):
            number = 0
            for axis in range(3):
                place = min(int(pictures[n, p, axis] * bins[axis]), bins[axis] - 1)
                number = number * bins[axis] + place
            out[n, number] += 1.0 / n_pixels
