"""A collection to try the service with: the handwritten digits inside scikit-learn."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_digits

from ..collection.filling import appearing_collection
from ..models import StarRidge

__all__ = ["make_digits"]

_N_TRAINED = 1000
_N_BITS = 32


def make_digits(folder: Path) -> None:
    """Make a collection of 1,797 pictures of 8 x 8 pixels, of which the first 1,000 have labels."""
    X, y = load_digits(return_X_y=True)
    hasher = StarRidge(_N_BITS, random_state=0).fit(X[:_N_TRAINED], y[:_N_TRAINED])
    labels = [int(label) if place < _N_TRAINED else None for place, label in enumerate(y)]
    with appearing_collection(folder, hasher, vectors="int8") as collection:
        collection.add(X, labels=labels, metadata=[{"digit": int(label)} for label in y])  # type: ignore[arg-type]  # None
