"""Vectors from outside, checked before they meet those of others, and what a hasher makes of a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from .._common.labels import Label
from ..codes.binary import BinaryCodes
from ..collection.answers import Prediction
from ..collection.model_classes import ShownClasses
from ..collection.predictions import check_has_classes, predicted
from ..collection.search import novelty_of
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
class Classification:
    """What is predicted of rows beside their labels."""

    probabilities: bool = False
    novelty: bool = False


#: What becomes of rows: codes of items, codes of queries, or predictions.
RowsKind: TypeAlias = Literal["database", "encode"] | Classification


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """What a hasher made of rows: codes, or predicted labels and perhaps probabilities and novelty."""

    hasher: BaseHasher
    codes: BinaryCodes
    classes: list[Label] = field(default_factory=list)
    labels: list[Label | None] | None = None
    probabilities: np.ndarray | None = None
    novelty: np.ndarray | None = None

    @classmethod
    def of(cls, hasher: BaseHasher, classes: ShownClasses, kind: RowsKind, X: np.ndarray) -> EncodedRows:
        """Encode rows as items or queries, or predict their labels."""
        if kind == "database":
            return cls.for_storage(hasher, X)
        taking = hasher.for_rows(X)
        if kind == "encode":
            return cls(hasher, taking.encode(X))
        no_codes = BinaryCodes(np.empty((len(X), 1), np.uint8), 8)
        labels, shares = predicted(hasher, classes, X, with_shares=kind.probabilities)
        novelty = novelty_of(hasher, X) if kind.novelty else None
        return cls(hasher, no_codes, classes.labels, labels, shares if kind.probabilities else None, novelty)

    @classmethod
    def for_storage(cls, hasher: BaseHasher, X: np.ndarray) -> EncodedRows:
        """Encode rows as items."""
        return cls(hasher, hasher.for_rows(X).encode_database(X))

    def part(self, rows: slice) -> EncodedRows:
        """Return what belongs to some of the rows."""
        labels = None if self.labels is None else self.labels[rows]
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        novelty = None if self.novelty is None else self.novelty[rows]
        return EncodedRows(self.hasher, self.codes[rows], self.classes, labels, probabilities, novelty)


def can_predict(hasher: BaseHasher, method: Capability = "predict") -> bool:
    """Return whether a hasher predicts labels; numbers of clusters are none."""
    return method in hasher.supports and not hasher.holds_clusters


def check_predicts(hasher: BaseHasher, kind: Classification) -> None:
    """Refuse predictions that the hasher cannot make."""
    check_has_classes(hasher)
    if kind.probabilities:
        hasher.require("predict_proba")
    if kind.novelty:
        hasher.require("novelty")


def predictions(encoded: EncodedRows, reject: float | None = None) -> Prediction:
    """Return predicted labels as plain values, without those of a share of the rows that is novel."""
    found = Prediction(encoded.labels or [])
    if encoded.probabilities is not None:
        found = replace(found, classes=encoded.classes, probabilities=encoded.probabilities.tolist())
    return found if reject is None or encoded.novelty is None else found.rejecting(encoded.novelty, reject)
