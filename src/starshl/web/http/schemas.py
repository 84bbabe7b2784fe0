"""The shapes of requests, for checks and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..requests import NewItems, SearchOptions
from .types import MOST_CONDITIONS, MOST_HITS, MOST_QUERIES, MOST_ROWS, Id, Ids, Label, Metadata, Vector, Vectors

__all__ = [
    "AddRequest",
    "FieldsRequest",
    "FitRequest",
    "ItemsRequest",
    "LabelsRequest",
    "PredictRequest",
    "SearchRequest",
    "SnapshotRequest",
    "UpdateRequest",
    "VectorsRequest",
]


class Strict(BaseModel):
    """A body with exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewItem(Strict):
    """An item to store; without an id, it gets the next free one."""

    vector: Vector
    id: Id | None = None
    label: Label | None = None
    metadata: Metadata = Field(default_factory=dict)
    reference: Annotated[str, Field(max_length=10_000)] | None = None


class AddRequest(Strict):
    """Items to store, all of them or none."""

    items: Annotated[list[NewItem], Field(min_length=1, max_length=MOST_ROWS)]

    def to_items(self, *, ids_required: bool) -> NewItems:
        ids = [item.id for item in self.items]
        given = [number for number in ids if number is not None]
        if len(given) < len(ids) and (ids_required or given):
            raise ValueError(
                "Some items have no id. "
                + ("Replacing items needs the id of each." if ids_required else "Give all of them ids, or none.")
            )
        return NewItems(
            vectors=[item.vector for item in self.items],
            ids=given or None,
            labels=[item.label for item in self.items],
            metadata=[item.metadata for item in self.items],
            references=[item.reference for item in self.items],
        )


class ItemUpdate(Strict):
    id: Id
    metadata: Metadata


class UpdateRequest(Strict):
    """New metadata of items."""

    items: Annotated[list[ItemUpdate], Field(min_length=1, max_length=MOST_ROWS)]


class ItemLabel(Strict):
    id: Id
    label: Label | None


class LabelsRequest(Strict):
    """New labels of items; null takes a label away."""

    items: Annotated[list[ItemLabel], Field(min_length=1, max_length=MOST_ROWS)]


class ItemsRequest(Strict):
    """Ids of items."""

    ids: Ids


class VectorsRequest(Strict):
    """Vectors to encode."""

    vectors: Vectors


class PredictRequest(VectorsRequest):
    """Vectors to classify."""

    probabilities: bool = False


class SearchRequest(Strict):
    """Vectors to search for, or ids of stored items, and how to search.

    With ``radius``, all items within that Hamming distance are found, and the nearest ``k`` of them returned.
    """

    vectors: Annotated[list[Vector], Field(min_length=1, max_length=MOST_QUERIES)] | None = None
    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_QUERIES)] | None = None
    k: Annotated[int, Field(ge=1, le=10_000)] = 10
    radius: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    where: Metadata | None = None
    labels: Annotated[list[Label], Field(min_length=1, max_length=1000)] | None = None
    among: Annotated[list[Id], Field(max_length=100_000)] | None = None
    rescore: bool | None = None
    oversample: Annotated[int, Field(ge=1, le=1000)] = 10
    metric: Literal["euclidean", "cosine"] = "euclidean"
    by_scores: bool = False
    explain: bool = False

    @model_validator(mode="after")
    def check(self) -> Self:
        if (self.vectors is None) == (self.items is None):
            raise ValueError("give either vectors or items")
        n_queries = len(self.vectors or self.items or ())
        if n_queries * self.k > MOST_HITS:
            raise ValueError(f"{n_queries} queries with k = {self.k} ask for more than {MOST_HITS} results")
        if self.where is not None and _n_values(self.where) > MOST_CONDITIONS:
            raise ValueError(
                f"a filter has up to {MOST_CONDITIONS} names and values; use `among` for long lists of ids"
            )
        if self.explain and n_queries * self.k > 1000:
            raise ValueError("explanations are for up to 1,000 results at a time")
        return self

    def to_options(self) -> SearchOptions:
        return SearchOptions.of(
            where=self.where,
            k=self.k,
            radius=self.radius,
            labels=None if self.labels is None else tuple(self.labels),
            among=None if self.among is None else tuple(self.among),
            rescore=self.rescore,
            oversample=self.oversample,
            metric=self.metric,
            by_scores=self.by_scores,
            explain=self.explain,
        )


class FitRequest(Strict):
    """A hasher to fit on the kept vectors and the labels of a collection, which it then encodes again."""

    method: Annotated[str, Field(max_length=100)] = "StarRidge"
    n_bits: Annotated[int, Field(ge=1, le=4096)] = 32
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    settings: Metadata = Field(default_factory=dict)


class FieldsRequest(Strict):
    """Metadata fields to declare, and their types."""

    fields: Annotated[dict[str, Literal["int", "float", "str", "bool"]], Field(min_length=1, max_length=100)]


class SnapshotRequest(Strict):
    """The name of a new snapshot; the date and the time if there is none."""

    name: Annotated[str, Field(max_length=100)] | None = None


def _n_values(value: Any) -> int:
    """Count the names and values in a filter, which is not deep: bodies are limited to 64 levels."""
    if isinstance(value, dict):
        return sum(1 + _n_values(inner) for inner in value.values())
    return sum(map(_n_values, value)) if isinstance(value, list) else 1
