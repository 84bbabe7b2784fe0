"""The shapes of requests, for checks and for OpenAPI, and of answers that are no values of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator

from ...client.answers import CollectionInfo, Job, Snapshot
from ...codes.binary import BinaryCodes
from ...collection.answers import ClassChange, SearchResult
from ...collection.guesses import Order
from ...collection.options import Filters, Metric, SearchKeywords, SearchOptions
from ..writes import NewItems

_SMALLEST_ID, _LARGEST_ID = -(2**63), 2**63 - 1
# What one request may bring or ask for. Higher limits spare clients requests; lower ones let other requests have their
# turn sooner, and bound the memory of an answer.
MOST_ROWS = 10_000
MOST_QUERIES = 1_000
MOST_HITS = 100_000
MOST_EXPLANATIONS = 1_000
MOST_CONDITIONS = 500
Id = Annotated[int, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
# The strict types keep true and 1 apart.
Label = (
    StrictBool
    | Annotated[StrictInt, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
    | Annotated[StrictStr, Field(max_length=10_000)]
)
# Embedders and items take the beginning of a long one, and answers say so.
Text = Annotated[str, Field(max_length=2_000_000)]
#: A cell of a table, null where it is empty.
Cell = Annotated[StrictStr, Field(max_length=100_000)] | StrictInt | Annotated[float, Field(allow_inf_nan=False)] | None
MOST_CELLS = 10_000
MOST_FIELDS = 100


def _check_cells(row: Any) -> Any:
    """Refuse the cells of a row at the first wrong one, which pydantic does for lists alone."""
    for name, cell in _few(MOST_CELLS, row).items() if isinstance(row, dict) else ():
        if isinstance(cell, bool) or not isinstance(cell, str | int | float | None):
            raise ValueError(f"a cell is text, a number or null, and another thing arrived for {name[:80]!r}")
    return row


def _few(most: int, given: Any) -> Any:
    """Refuse an object of too many names before each of them is checked."""
    if isinstance(given, dict) and len(given) > most:
        raise ValueError(f"there are {len(given)} names, and up to {most} are allowed")
    return given


TableRow = (
    Annotated[dict[str, Cell], Field(min_length=1, max_length=MOST_CELLS), BeforeValidator(_check_cells)]
    | Annotated[list[Cell], Field(fail_fast=True, min_length=1, max_length=MOST_CELLS)]
)
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(fail_fast=True, min_length=1, max_length=1_000_000)]
Vectors = Annotated[list[Vector], Field(fail_fast=True, min_length=1, max_length=MOST_ROWS)]
Ids = Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_ROWS)]
Metadata = dict[str, Any]
WantedLabels = Annotated[list[Label], Field(fail_fast=True, min_length=1, max_length=1000)]
HitCount = Annotated[int, Field(ge=1, le=10_000)]
Radius = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]
# Each unknown field becomes an error; so does each wrong value of a list that does not fail at the first one.
_MOST_UNKNOWN = 20
_CONTENTS = ("vector", "text", "row")  # what an item may be


class Strict(BaseModel):
    """A body with exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def check_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > len(cls.model_fields) + _MOST_UNKNOWN:
            names = ", ".join(cls.model_fields)
            raise ValueError(f"there are {len(given)} fields, most of them unknown; the fields here are {names}")
        return given


def _example(**body: Any) -> ConfigDict:
    """Return the setting that shows a body in the description of the API, which leaves out what is None."""
    return ConfigDict(json_schema_extra={"examples": [body]})


class NewItem(Strict):
    """An item to store, as a vector, a text or a row of a table; without an id, it gets the next free one."""

    vector: Vector | None = None
    text: Text | None = None
    row: TableRow | None = None
    id: Id | None = None
    label: Label | None = None
    metadata: Metadata = Field(default_factory=dict)
    reference: Annotated[str, Field(max_length=10_000)] | None = None


class AddRequest(Strict):
    """Items to store, all of them or none."""

    model_config = _example(
        items=[{"vector": [0.1, 0.7, 0.2], "label": "ship", "metadata": {"year": 2024}, "reference": "ship.png"}]
    )

    items: Annotated[list[NewItem], Field(fail_fast=True, min_length=1, max_length=MOST_ROWS)]

    @model_validator(mode="after")
    def check(self) -> Self:
        given = {tuple(name for name in _CONTENTS if getattr(item, name) is not None) for item in self.items}
        if given not in [{(name,)} for name in _CONTENTS]:
            raise ValueError("give every item a vector, or every item a text, or every item a row")
        return self

    @property
    def texts(self) -> list[str]:
        """The texts of the items; none if they are vectors."""
        return [item.text for item in self.items if item.text is not None]

    @property
    def rows(self) -> list[TableRow]:
        """The rows of a table that the items are; none if they are vectors or texts."""
        return [item.row for item in self.items if item.row is not None]

    def to_items(self, *, ids_required: bool) -> NewItems:
        ids = [item.id for item in self.items]
        given = [number for number in ids if number is not None]
        if len(given) < len(ids) and (ids_required or given):
            raise ValueError(
                "Some items have no id. "
                + ("Replacing items needs the id of each." if ids_required else "Give all of them ids, or none.")
            )
        return new_items(self.items)


def new_items(items: Sequence[NewItem]) -> NewItems:
    """Return items as a searcher takes them; those that are texts or rows of a table have no vectors yet."""
    return NewItems(
        vectors=[item.vector for item in items if item.vector is not None],
        ids=[item.id for item in items if item.id is not None] or None,
        labels=[item.label for item in items],
        metadata=[item.metadata for item in items],
        references=[item.reference for item in items],
    )


class ItemUpdate(Strict):
    id: Id
    metadata: Metadata


class UpdateRequest(Strict):
    """New metadata of items."""

    model_config = _example(items=[{"id": 7, "metadata": {"year": 2024}}])

    items: Annotated[list[ItemUpdate], Field(fail_fast=True, min_length=1, max_length=MOST_ROWS)]


class ItemLabel(Strict):
    id: Id
    label: Label | None


class LabelsRequest(Strict):
    """New labels of items; null takes a label away."""

    model_config = _example(items=[{"id": 7, "label": "ship"}, {"id": 8, "label": "boat"}])

    items: Annotated[list[ItemLabel], Field(fail_fast=True, min_length=1, max_length=MOST_ROWS)]


class RenameRequest(Strict):
    """A class and its new name."""

    model_config = _example(label="ship", name="vessel")

    label: Label
    name: Label


class MergeRequest(Strict):
    """A class, and the class that it becomes part of."""

    model_config = _example(label="boat", into="ship")

    label: Label
    into: Label


class RemoveClassRequest(Strict):
    """A class to hide."""

    model_config = _example(label="boat")

    label: Label


class UndoRequest(Strict):
    """The number of a change of classes; null is the last one that stands."""

    model_config = _example(number=2)

    number: Annotated[int, Field(ge=0)] | None = None


class ItemsRequest(Strict):
    """Ids of items."""

    model_config = _example(ids=[7, 8])

    ids: Ids


class FilterRequest(Strict):
    """Which items are meant: those that pass all filters, or all if there is none."""

    model_config = _example(where={"year": {">=": 2020}}, labels=["ship"])

    where: Metadata | None = None
    labels: WantedLabels | None = None
    guesses: WantedLabels | None = None
    among: Annotated[list[Id], Field(fail_fast=True, max_length=100_000)] | None = None

    @model_validator(mode="after")
    def check_filter(self) -> Self:
        if self.where is not None and _n_values(self.where) > MOST_CONDITIONS:
            raise ValueError(
                f"a filter has up to {MOST_CONDITIONS} names and values; use `among` for long lists of ids"
            )
        return self

    def to_filters(self) -> Filters:
        return Filters.of(self.where, self.among, self.labels, self.guesses)


class ListRequest(FilterRequest):
    """Which items to list: behind the item ``after``, and up to ``limit`` of them.

    ``order`` is by id, or the likeliest or the least sure guesses first.
    """

    model_config = _example(where={"year": {">=": 2020}}, after=7, limit=100)

    after: Id | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    order: Order = "id"


class ReviewRequest(Strict):
    """Items whose guesses are accepted or rejected, and which guess that is of each; null is what is guessed now."""

    model_config = _example(ids=[7, 8], labels=["ship", "ship"])

    ids: Ids
    labels: Annotated[list[Label | None], Field(fail_fast=True, max_length=MOST_ROWS)] | None = None


class RemoveRequest(Strict):
    """The items to remove: either ids, or a filter on metadata or labels."""

    model_config = _example(ids=[7, 8])

    ids: Ids | None = None
    where: Metadata | None = None
    labels: WantedLabels | None = None

    @model_validator(mode="after")
    def check(self) -> Self:
        if (self.ids is None) == (not self.where and self.labels is None):
            raise ValueError("give either ids or a filter, which is where or labels or both, and not empty")
        return self

    def to_filters(self) -> Filters:
        return FilterRequest(where=self.where, labels=self.labels).to_filters()


class VectorsRequest(Strict):
    """Vectors, texts or rows of a table to encode."""

    model_config = _example(vectors=[[0.1, 0.7, 0.2]])

    vectors: Vectors | None = None
    texts: Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    rows: Annotated[list[TableRow], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None

    @model_validator(mode="after")
    def check(self) -> Self:
        if sum(given is not None for given in (self.vectors, self.texts, self.rows)) != 1:
            raise ValueError("give either vectors, texts or rows")
        return self


class PredictRequest(VectorsRequest):
    """Vectors, texts or rows of a table to classify."""

    model_config = _example(vectors=[[0.1, 0.7, 0.2]], probabilities=True)

    probabilities: bool = False
    reject: Probability | None = None


class SearchSettings(FilterRequest):
    """How to search, and among which items."""

    k: HitCount = 10
    rescore: bool | None = None
    oversample: Annotated[int, Field(ge=1, le=1000)] | None = None
    metric: Metric | None = None
    min_probability: Probability | None = None
    reject: Probability | None = None
    by_scores: bool = False
    explain: bool = False

    @property
    def n_queries(self) -> int:
        return 1

    @model_validator(mode="after")
    def check_size(self) -> Self:
        if self.n_queries * self.k > MOST_HITS:
            raise ValueError(f"{self.n_queries} queries with k = {self.k} ask for more than {MOST_HITS} results")
        if self.explain and self.n_queries * self.k > MOST_EXPLANATIONS:
            raise ValueError(f"explanations are for up to {MOST_EXPLANATIONS:,} results at a time")
        return self

    def to_options(self) -> SearchOptions:
        given = {
            name: getattr(self, name) for name in SearchKeywords.__annotations__ if name in type(self).model_fields
        }
        return SearchOptions.of(self.k, **given)


class SearchRequest(SearchSettings):
    """Vectors, texts or rows of a table to search for, or ids of stored items, and how to search.

    With ``radius``, all items within that distance are found, and the nearest ``k`` of them returned.
    """

    model_config = _example(vectors=[[0.1, 0.7, 0.2]], k=10, where={"year": {">=": 2020}})

    vectors: Annotated[list[Vector], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    items: Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    texts: Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    rows: Annotated[list[TableRow], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    radius: Radius | None = None

    @property
    def n_queries(self) -> int:
        return len(self.vectors or self.items or self.texts or self.rows or ())

    @model_validator(mode="after")
    def check(self) -> Self:
        if sum(given is not None for given in (self.vectors, self.items, self.texts, self.rows)) != 1:
            raise ValueError("give either vectors, items, texts or rows")
        return self


class SearchesRequest(Strict):
    """Searches with different options, answered together."""

    model_config = _example(searches=[{"items": [7], "k": 5}, {"vectors": [[0.1, 0.7, 0.2]], "labels": ["ship"]}])

    searches: Annotated[list[SearchRequest], Field(fail_fast=True, min_length=1, max_length=100)]

    @model_validator(mode="after")
    def check(self) -> Self:
        for most, counted in ((MOST_HITS, self.searches), (MOST_EXPLANATIONS, [s for s in self.searches if s.explain])):
            if sum(search.n_queries * search.k for search in counted) > most:
                raise ValueError(f"the searches ask for more than {most} results together")
        return self


class RecommendRequest(SearchSettings):
    """Ids of stored items: what is found is like the first ones, and unlike the others."""

    model_config = _example(like=[7, 8], unlike=[9], k=10)

    like: Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)]
    unlike: Annotated[list[Id], Field(fail_fast=True, max_length=MOST_QUERIES)] = Field(default_factory=list)


class FitRequest(Strict):
    """A hasher to fit on the kept vectors and the labels of a collection, which it then encodes again."""

    model_config = _example(method="StarRidge", n_bits=32)

    method: Annotated[str, Field(max_length=100)] = "StarRidge"
    n_bits: Annotated[int, Field(ge=1, le=4096)] = 32
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    settings: Metadata = Field(default_factory=dict)


class FieldsRequest(Strict):
    """Metadata fields to declare, and their types."""

    model_config = _example(fields={"year": "int"})

    fields: Annotated[
        dict[str, Literal["int", "float", "str", "bool"]],
        Field(min_length=1, max_length=MOST_FIELDS),
        BeforeValidator(partial(_few, MOST_FIELDS)),
    ]


class SnapshotRequest(Strict):
    """The name of a new snapshot; the date and the time if there is none."""

    model_config = _example(name="before-the-move")

    name: Annotated[str, Field(max_length=100)] | None = None


def _n_values(value: Any) -> int:
    """Count the names and values in a filter, which is not deep: bodies are limited to 64 levels."""
    if isinstance(value, dict):
        return sum(1 + _n_values(inner) for inner in value.values())
    return sum(map(_n_values, value)) if isinstance(value, list) else 1


# Answers whose form differs from what the library returns.


@dataclass(frozen=True, slots=True)
class Health:
    status: str


@dataclass(frozen=True, slots=True)
class Collections:
    version: str
    collections: list[CollectionInfo]


@dataclass(frozen=True, slots=True)
class ClassCount:
    """A class under the name that it has now, and how many items have it."""

    label: Label
    items: int


@dataclass(frozen=True, slots=True)
class Classes:
    """All classes that items have or the hasher predicts, and what was renamed, merged or removed."""

    classes: list[ClassCount]
    changes: list[ClassChange]


@dataclass(frozen=True, slots=True)
class Count:
    """How many items pass the filters; ``notes`` say how to ask more efficiently."""

    count: int
    notes: list[str]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """One result per query; ``notes`` say how to ask more efficiently."""

    results: list[SearchResult]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchAnswers:
    """One answer per search."""

    answers: list[SearchAnswer]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Codes in hexadecimal: bit j is bit j % 8, counted from the least significant, of byte j // 8.

    ``notes`` name texts without a known word.
    """

    n_bits: int
    codes: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SnapshotList:
    snapshots: list[Snapshot]


@dataclass(frozen=True, slots=True)
class Restored:
    n_items: int


@dataclass(frozen=True, slots=True)
class JobList:
    jobs: list[Job]


def encoded_answer(codes: BinaryCodes, notes: Sequence[str] = ()) -> Encoded:
    return Encoded(n_bits=codes.n_bits, codes=[row.tobytes().hex() for row in codes.packed], notes=list(notes))
