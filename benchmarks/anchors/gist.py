"""GIST of small gray pictures (Oliva and Torralba 2001): energies of 32 Gabor filters in 16 blocks, 512 numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import fft2, fftfreq, ifft2

__all__ = ["gist"]

SCALES, ORIENTATIONS, BLOCKS = 4, 8, 4
_BORDER = 8  # pixels by which a picture is extended, mirrored
_CUTOFF = 4.0  # cycles per picture below which brightness is flattened
# Tests replace it, so that a few pictures take several rounds.
AT_ONCE = 250


def gist(pictures: np.ndarray, report: Callable[[int], None] = lambda n_done: None) -> np.ndarray:
    """Return the descriptors, float32 of shape (n, 512), of gray pictures of shape (n, side, side), 0 to 255."""
    side = pictures.shape[1]
    size = side + 2 * _BORDER
    filters = _gabor_filters(size)
    smooth = _low_pass(size)
    descriptors = np.empty((len(pictures), SCALES * ORIENTATIONS * BLOCKS**2), dtype=np.float32)
    for start in range(0, len(pictures), AT_ONCE):
        piece = slice(start, start + AT_ONCE)
        spectra = fft2(_flatten(_extended(pictures[piece]), smooth))
        responses = [
            _block_means(np.abs(ifft2(spectra * own))[:, _BORDER:-_BORDER, _BORDER:-_BORDER]) for own in filters
        ]
        descriptors[piece] = np.concatenate(responses, axis=1)
        report(min(start + AT_ONCE, len(pictures)))
    return descriptors


def _extended(pictures: np.ndarray) -> np.ndarray:
    border = ((0, 0), (_BORDER, _BORDER), (_BORDER, _BORDER))
    return np.pad(np.log1p(pictures.astype(np.float32)), border, mode="symmetric")


def _flatten(pictures: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """Take out slow changes of brightness, and divide by the local contrast."""
    details = pictures - ifft2(fft2(pictures) * smooth).real
    contrast = np.sqrt(np.abs(ifft2(fft2(details**2) * smooth).real))
    return details / (0.2 + contrast)


def _frequencies(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies in cycles per picture and their directions, in the order of the discrete transform."""
    own = fftfreq(size, 1.0 / size)
    return np.hypot(own[:, None], own), np.arctan2(own[:, None], own)


def _low_pass(size: int) -> np.ndarray:
    frequency, _ = _frequencies(size)
    width = _CUTOFF / np.sqrt(np.log(2.0))
    return np.exp(-(frequency**2) / width**2).astype(np.float32)


def _gabor_filters(size: int) -> list[np.ndarray]:
    """Return transfer functions: bands of frequency, each 1.85 times as low as the one before, by directions."""
    frequency, direction = _frequencies(size)
    filters = []
    for scale in range(SCALES):
        center = 0.3 * size / 1.85**scale
        radial = 3.5 * (frequency / center - 1.0) ** 2
        for turn in np.arange(ORIENTATIONS) * np.pi / ORIENTATIONS:
            angle = (direction + turn + np.pi) % (2 * np.pi) - np.pi
            filters.append(np.exp(-radial - 2.0 * np.pi * ORIENTATIONS**2 / 64.0 * angle**2).astype(np.float32))
    return filters


def _block_means(responses: np.ndarray) -> np.ndarray:
    n, side, _ = responses.shape
    block = side // BLOCKS
    return responses.reshape(n, BLOCKS, block, BLOCKS, block).mean(axis=(2, 4)).reshape(n, -1)
