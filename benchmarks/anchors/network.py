"""What EfficientNet-Lite0 sees in all pictures of CIFAR-10: 1,280 numbers each, computed once, in pieces."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from starshl.data.datasets.convert import luma
from starshl.data.features import NetworkFeatures, ReadPictures

__all__ = ["features_of_all", "read_pictures"]

_PIECE = 2_000  # pictures in one file of the cache: what an interruption costs at most
_AT_ONCE = 50  # a picture takes 150 kB at the size that the network reads


def read_pictures(path: str, gray: np.ndarray) -> np.ndarray:
    """Return the color pictures in a file, if they are those of the gray data set in the same order."""
    with np.load(path, allow_pickle=False) as arrays:
        X = arrays["X"]
    if X.dtype != np.uint8 or X.shape != (len(gray), 3 * gray.shape[1]):
        sys.exit(f"{path} has X of {X.shape}, {X.dtype}; needed are {len(gray):,} x {3 * gray.shape[1]:,} of uint8.")
    pixels = X.reshape(len(X), -1, 3)
    pieces = [slice(start, start + _PIECE) for start in range(0, len(X), _PIECE)]
    differing = sum(int((luma(np.moveaxis(pixels[rows], 2, 1)) != gray[rows]).any(axis=1).sum()) for rows in pieces)
    if differing:
        sys.exit(f"{differing:,} pictures of {path} are not the gray ones of the data set. Keep the rows in its order.")
    side = round(gray.shape[1] ** 0.5)
    return X.reshape(-1, side, side, 3)


def features_of_all(pictures: np.ndarray, cache: Path) -> np.ndarray:
    """Return the features, float32; pieces that are in the cache are not computed again."""
    cache.mkdir(parents=True, exist_ok=True)
    read, network = ReadPictures(224).fit(), NetworkFeatures().fit()
    pieces = []
    for start in range(0, len(pictures), _PIECE):
        path = cache / f"cifar10-network-{start:05d}.npy"
        if not path.exists():
            piece = pictures[start : start + _PIECE]
            batches = [piece[first : first + _AT_ONCE] for first in range(0, len(piece), _AT_ONCE)]
            unfinished = path.with_suffix(".new.npy")
            np.save(unfinished, np.vstack([network.transform(read.transform(batch)) for batch in batches]))
            unfinished.replace(path)
            print(f"\rNetwork: {start + len(piece):,} of {len(pictures):,} pictures", end="", file=sys.stderr)
        pieces.append(np.load(path))
    return np.concatenate(pieces)
