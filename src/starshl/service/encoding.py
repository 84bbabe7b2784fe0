"""Vectors from outside, checked before they meet those of others, and what a hasher makes of a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..client.answers import Prediction
from ..codes.binary import BinaryCodes
from ..hashers.base import BaseHasher, Capability

# Squares of larger numbers, and their sums over many columns, might be infinite.
MAX_NUMBER = 1e100
_MOST_NAMES = 20  # of columns, in a message


def check_vectors(vectors: Sequence[Sequence[float]] | np.ndarray, hasher: BaseHasher, name: str) -> np.ndarray:
    """Return vectors as a matrix that this hasher can encode, or say which one it cannot; ``name`` is their name."""
    width = hasher.vector_width
    if width is None:
        raise ValueError("The hasher of this collection was not fitted on vectors, so it cannot encode these.")
    if isinstance(vectors, np.ndarray) and vectors.dtype == object:
        return vectors  # cells of a table, which were checked
    for number, vector in enumerate(vectors):
        if len(vector) != width and hasher.takes_cells:
            example = _example(hasher)
            sent = f"as `row` of each item: {example}" if name == "items" else f"as `rows`: [{example}]"
            raise ValueError(
                f"{name}[{number}] has {len(vector)} numbers. This collection takes rows of a table, {sent}. Send "
                f"these, or prepared vectors of {width} numbers."
            )
        if len(vector) != width:
            raise wrong_length(f"{name}[{number}]", len(vector), width)
    rows = np.asarray(cast(Any, vectors), np.float64).reshape(len(vectors), width)
    wrong = ~(np.abs(rows) <= MAX_NUMBER).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"{name}[{int(wrong.argmax())}] holds a number that is not finite or above {MAX_NUMBER:g} in size. Send "
            "finite numbers of ordinary size."
        )
    return rows


def _example(hasher: BaseHasher) -> str:
    """Return how a row of a table is sent."""
    names = hasher.feature_names
    if not names:
        return f"a list of {hasher.n_features_in_} values, text or numbers"
    shown = ", ".join(f'"{each}": ...' for each in names[:_MOST_NAMES])
    return f"{{{shown}{', ...' if len(names) > _MOST_NAMES else ''}}}"


def wrong_length(name: str, length: int, width: int) -> ValueError:
    """Return the error for a vector that has more or fewer numbers than those of a collection."""
    return ValueError(
        f"{name} has {length} numbers; the vectors of this collection have {width}. Send vectors made in the same way "
        "as those it was built with."
    )


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """What a hasher made of rows: codes, or predicted labels and perhaps probabilities."""

    hasher: BaseHasher
    codes: BinaryCodes
    labels: Any = None
    probabilities: Any = None

    @classmethod
    def of(cls, hasher: BaseHasher, kind: str, X: np.ndarray) -> EncodedRows:
        """Encode rows as items ("database") or queries ("encode"), or predict their labels."""
        taking = hasher.for_rows(X)
        if kind == "database":
            return cls(hasher, taking.encode_database(X))
        if kind == "encode":
            return cls(hasher, taking.encode(X))
        no_codes = BinaryCodes(np.empty((len(X), 1), np.uint8), 8)
        probabilities = taking.predict_proba(X) if kind == "predict_proba" else None
        return cls(hasher, no_codes, np.asarray(taking.predict(X)), probabilities)

    def part(self, rows: slice) -> EncodedRows:
        """Return what belongs to some of the rows."""
        labels = None if self.labels is None else self.labels[rows]
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return EncodedRows(self.hasher, self.codes[rows], labels, probabilities)


def can_predict(hasher: BaseHasher, method: Capability = "predict") -> bool:
    """Return whether a hasher predicts labels; numbers of clusters are none."""
    return method in hasher.supports and not hasher.holds_clusters


def check_predicts(hasher: BaseHasher, probabilities: bool) -> None:
    """Refuse predictions that the hasher cannot make."""
    hasher.require("predict")
    if hasher.holds_clusters:
        raise ValueError(
            "The codes of this collection were learned without labels: they tell clusters apart, which have no names, "
            "so no label can be predicted. Label some items and fit again, or use a model that was fitted with labels."
        )
    if probabilities:
        hasher.require("predict_proba")


def predictions(encoded: EncodedRows) -> Prediction:
    """Return predicted labels as plain values."""
    classes = None if encoded.probabilities is None else encoded.hasher.class_labels
    probabilities = None if encoded.probabilities is None else encoded.probabilities.tolist()
    return Prediction(encoded.labels.tolist(), classes, probabilities)
