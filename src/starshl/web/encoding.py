"""What a hasher makes of a batch of rows: codes, or predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Prediction
from ..base import BaseHasher
from ..codes import BinaryCodes
from ..collection.prepared_rows import vector_hasher
from ..features import inner_hasher
from .classes import holds_clusters

__all__ = ["Encoded", "can_predict", "check_predicts", "predictions"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a hasher made of rows: codes, or predicted labels and perhaps probabilities."""

    hasher: Any
    codes: BinaryCodes
    labels: Any = None
    probabilities: Any = None

    @classmethod
    def of(cls, hasher: Any, kind: str, X: np.ndarray) -> Encoded:
        """Encode rows as items ("database") or queries ("encode"), or predict their labels."""
        takes_rows = hasher
        hasher = vector_hasher(takes_rows, X)
        if kind == "database":
            return cls(takes_rows, hasher.encode_database(X))
        if kind == "encode":
            return cls(takes_rows, hasher.encode(X))
        no_codes = BinaryCodes(np.empty((len(X), 1), np.uint8), 8)
        probabilities = hasher.predict_proba(X) if kind == "predict_proba" else None
        return cls(takes_rows, no_codes, np.asarray(hasher.predict(X)), probabilities)

    def part(self, rows: slice) -> Encoded:
        """Return what belongs to some of the rows."""
        labels = None if self.labels is None else self.labels[rows]
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return Encoded(self.hasher, self.codes[rows], labels, probabilities)


def can_predict(hasher: BaseHasher, method: str = "predict") -> bool:
    """Return whether a hasher predicts labels; numbers of clusters are none."""
    return hasattr(hasher, method) and not holds_clusters(hasher)


def check_predicts(hasher: BaseHasher, probabilities: bool) -> None:
    """Refuse predictions that the hasher cannot make."""
    name = type(inner_hasher(hasher)).__name__
    if not hasattr(hasher, "predict"):
        raise ValueError(f"The hasher of this collection is {name}, which learns codes, not classes. Use a StarRidge.")
    if holds_clusters(hasher):
        raise ValueError(
            "The codes of this collection were learned without labels: they tell clusters apart, which have no names, "
            "so no label can be predicted. Label some items and fit again, or use a model that was fitted with labels."
        )
    if probabilities and not hasattr(hasher, "predict_proba"):
        raise ValueError(
            f"The hasher of this collection is {name}, which predicts classes without probabilities. Leave them out, "
            "or use a StarRidge."
        )


def predictions(encoded: Encoded) -> Prediction:
    """Return predicted labels as plain values."""
    classes = None if encoded.probabilities is None else np.asarray(encoded.hasher.classes_).tolist()
    probabilities = None if encoded.probabilities is None else encoded.probabilities.tolist()
    return Prediction(encoded.labels.tolist(), classes, probabilities)
