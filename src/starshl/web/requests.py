"""What a searcher is asked, and what it answers, as plain frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from ..collection import Explanation, Hit

__all__ = ["CollectionInfo", "Found", "Label", "NewItems", "Predictions", "SearchOptions", "WriteKey", "Written"]

Label: TypeAlias = str | int | bool


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search; requests with equal options are searched together.

    ``where`` is JSON, so that options can be compared. With ``radius``, all items within that distance are found and
    the nearest ``k`` returned.
    """

    k: int = 10
    radius: int | None = None
    where: str | None = None
    labels: tuple[Label, ...] | None = None
    among: tuple[int, ...] | None = None
    rescore: bool | None = None
    oversample: int = 10
    metric: str = "euclidean"
    by_scores: bool = False
    explain: bool = False

    @classmethod
    def of(cls, *, where: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Return options whose filter is given as a dictionary."""
        return cls(where=None if where is None else json.dumps(where, sort_keys=True), **options)

    def batch_key(self) -> tuple[object, ...]:
        """Return what distinguishes options; 1 and True are equal in Python, and differ as labels."""
        kinds = None if self.labels is None else tuple(type(label).__name__ for label in self.labels)
        return self, kinds

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of a collection's search."""
        return {
            "where": None if self.where is None else json.loads(self.where),
            "labels": None if self.labels is None else list(self.labels),
            "among": None if self.among is None else list(self.among),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The items found for one query, how many there were before the rest was left out, and why they match."""

    hits: list[Hit]
    total: int
    explanations: list[Explanation | None] | None = None


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items to store; lists have one entry per item."""

    vectors: Sequence[Sequence[float]]
    ids: Sequence[int] | None = None
    labels: Sequence[Label | None] | None = None
    metadata: Sequence[Mapping[str, Any]] | None = None
    references: Sequence[str | None] | None = None


@dataclass(frozen=True, slots=True)
class WriteKey:
    """What makes a repeated write recognizable: a key that the sender chose, and the digest of what it sent."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class Written:
    """The ids that a write concerned, and whether it had been stored by an earlier attempt."""

    ids: list[int]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predicted labels, and the probabilities of all classes if they were asked for."""

    labels: list[Label]
    classes: list[Label] | None = None
    probabilities: list[list[float]] | None = None


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """What a collection is and can do."""

    name: str
    n_items: int
    n_bits: int
    method: str
    n_columns: int | None
    vectors: str | None
    label_kind: str | None
    fields: dict[str, str]
    classes: list[Label] | None
    predicts: bool
    probabilities: bool
    writable: bool
