"""Collections to try the service with: the handwritten digits inside scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from ..collection.collection import atomic_collection
from ..evaluation.reports.html import encode_png
from ..hashers.base import BaseHasher
from ..hashers.hybrid import HybridHasher

_N_TRAINED = 1000  # of 1,797 digits; the others have no label
_N_BITS = 32
_SIDE, _ENLARGED = 8, 6


def make_digits(folder: Path) -> None:
    """Make a collection of 1,797 pictures of 8 x 8 pixels, of which the first 1,000 have labels."""
    X, y = load_digits(return_X_y=True)
    hasher = HybridHasher(_N_BITS, random_state=0).fit(X[:_N_TRAINED], y[:_N_TRAINED])
    _fill(folder, hasher, X, [int(label) if place < _N_TRAINED else None for place, label in enumerate(y)], y)


def make_unlabeled_digits(folder: Path) -> None:
    """Make a collection of the same pictures without any label, to teach."""
    X, _ = load_digits(return_X_y=True)
    _fill(folder, HybridHasher(_N_BITS, random_state=0).fit(X), X, None, None)


def _fill(
    folder: Path, hasher: BaseHasher, X: np.ndarray, labels: list[int | None] | None, y: np.ndarray | None
) -> None:
    # The order of the pictures stands for the page of a book, as something to filter by.
    metadata = [{"page": place // 100} | ({} if y is None else {"digit": int(y[place])}) for place in range(len(X))]
    fields = {"page": int} | ({} if y is None else {"digit": int})
    previews = [_preview(row.reshape(_SIDE, _SIDE)) for row in X]
    with atomic_collection(folder, hasher, vectors="int8", fields=fields, kind="pictures") as collection:
        collection.add(X, labels=labels, metadata=metadata, previews=previews)  # type: ignore[arg-type]  # None


def _preview(picture: np.ndarray) -> bytes:
    """Return dark ink on white with smooth borders: 8 pixels alone would look like a chessboard."""
    ink = np.clip(2.4 * zoom(np.pad(picture / 16.0, 1), _ENLARGED, order=3) - 0.7, 0.0, 1.0)
    return encode_png((255 * (1.0 - ink)).round().astype(np.uint8))
