"""The shapes of requests and answers, for checks and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator

from ...collection import Explanation, Hit, Item
from ..jobs import JobState
from ..requests import CollectionInfo, Found, NewItems, SearchOptions, Written
from ..snapshots import SnapshotInfo

__all__ = [
    "AddRequest",
    "Collections",
    "Encoded",
    "FieldsRequest",
    "FitRequest",
    "Health",
    "Info",
    "ItemAnswer",
    "Items",
    "ItemsRequest",
    "Job",
    "JobList",
    "LabelsRequest",
    "PredictRequest",
    "Predicted",
    "Restored",
    "SearchAnswer",
    "SearchRequest",
    "Snapshot",
    "SnapshotList",
    "SnapshotRequest",
    "UpdateRequest",
    "VectorsRequest",
    "WriteAnswer",
]

_SMALLEST_ID, _LARGEST_ID = -(2**63), 2**63 - 1
_MOST_ROWS = 10_000
_MOST_QUERIES = 1_000
_MOST_HITS = 100_000
_MOST_CONDITIONS = 500

Id = Annotated[int, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
# The strict types keep true and 1 apart.
Label = (
    StrictBool
    | Annotated[StrictInt, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
    | Annotated[StrictStr, Field(max_length=10_000)]
)
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=1_000_000)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=_MOST_ROWS)]
Ids = Annotated[list[Id], Field(min_length=1, max_length=_MOST_ROWS)]
Metadata = dict[str, Any]


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

    items: Annotated[list[NewItem], Field(min_length=1, max_length=_MOST_ROWS)]

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

    items: Annotated[list[ItemUpdate], Field(min_length=1, max_length=_MOST_ROWS)]


class ItemLabel(Strict):
    id: Id
    label: Label | None


class LabelsRequest(Strict):
    """New labels of items; null takes a label away."""

    items: Annotated[list[ItemLabel], Field(min_length=1, max_length=_MOST_ROWS)]


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

    vectors: Annotated[list[Vector], Field(min_length=1, max_length=_MOST_QUERIES)] | None = None
    items: Annotated[list[Id], Field(min_length=1, max_length=_MOST_QUERIES)] | None = None
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
        if n_queries * self.k > _MOST_HITS:
            raise ValueError(f"{n_queries} queries with k = {self.k} ask for more than {_MOST_HITS} results")
        if self.where is not None and _n_values(self.where) > _MOST_CONDITIONS:
            raise ValueError(
                f"a filter has up to {_MOST_CONDITIONS} names and values; use `among` for long lists of ids"
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


class Health(BaseModel):
    status: str


class Info(BaseModel):
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

    @classmethod
    def of(cls, info: CollectionInfo) -> Self:
        return cls.model_construct(**{name: getattr(info, name) for name in cls.model_fields})


class Collections(BaseModel):
    version: str
    collections: list[Info]


class ItemAnswer(BaseModel):
    """A stored item; ``code_from`` says whether its code follows from its label or its vector."""

    id: int
    label: Label | None
    metadata: Metadata
    reference: str | None
    code_from: str
    vector: list[float] | None = None

    @classmethod
    def of(cls, item: Item, vector: list[float] | None = None) -> Self:
        return cls.model_construct(**item._asdict(), vector=vector)


class Items(BaseModel):
    """Items by id; ``next`` is what to pass as ``after`` for more, null if there are no more."""

    items: list[ItemAnswer]
    next: int | None = None


class WriteAnswer(BaseModel):
    """The ids that a write concerned; ``repeated`` if it had been stored by an earlier attempt with the same key."""

    ids: list[int]
    repeated: bool

    @classmethod
    def of(cls, written: Written) -> Self:
        return cls.model_construct(ids=written.ids, repeated=written.repeated)


class Why(BaseModel):
    """Why an item matches; ``text`` puts it into words."""

    text: str
    agreeing: list[int]
    differing: list[int]
    query_class: Label | None
    item_class: Label | None
    kernels: list[tuple[str, float]]
    training_rows: list[tuple[int, float]]

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        query, item = explanation.query_class, explanation.item_class
        return cls.model_construct(
            text=str(explanation),
            agreeing=explanation.agreeing,
            differing=explanation.differing,
            query_class=None if query is None else query.label,
            item_class=None if item is None else item.label,
            kernels=explanation.kernels,
            training_rows=explanation.training_rows,
        )


class HitAnswer(BaseModel):
    """An item near a query: the Hamming distance of codes, and the distance of vectors if these decided the order."""

    id: int
    distance: int
    rescored: float | None
    label: Label | None
    metadata: Metadata
    reference: str | None
    code_from: str
    explanation: Why | None = None

    @classmethod
    def of(cls, hit: Hit, explanation: Explanation | None) -> Self:
        why = None if explanation is None else Why.of(explanation)
        return cls.model_construct(**hit._asdict(), explanation=why)


class FoundAnswer(BaseModel):
    """The hits of one query, nearest first; ``total`` counts also those left out of a search by radius."""

    hits: list[HitAnswer]
    total: int


class SearchAnswer(BaseModel):
    """One entry per query."""

    results: list[FoundAnswer]

    @classmethod
    def of(cls, found: list[Found]) -> Self:
        results = [
            FoundAnswer.model_construct(
                hits=[
                    HitAnswer.of(hit, each.explanations[place] if each.explanations else None)
                    for place, hit in enumerate(each.hits)
                ],
                total=each.total,
            )
            for each in found
        ]
        return cls.model_construct(results=results)


class Encoded(BaseModel):
    """Codes in hexadecimal: bit j is bit j % 8, counted from the least significant, of byte j // 8."""

    n_bits: int
    codes: list[str]


class Predicted(BaseModel):
    """Predicted labels; with probabilities, one row per vector and one column per class."""

    labels: list[Label]
    classes: list[Label] | None
    probabilities: list[list[float]] | None


class Snapshot(BaseModel):
    name: str
    size: int
    created: float

    @classmethod
    def of(cls, info: SnapshotInfo) -> Self:
        return cls(name=info.name, size=info.size, created=info.created)


class SnapshotList(BaseModel):
    snapshots: list[Snapshot]


class Restored(BaseModel):
    n_items: int


class Job(BaseModel):
    """Work in the background; times are seconds since 1970."""

    id: str
    kind: str
    collection: str
    state: Literal["waiting", "running", "done", "failed", "canceled"]
    stage: str
    done: int
    total: int | None
    created: float
    started: float | None
    ended: float | None
    error: str | None
    result: Metadata | None

    @classmethod
    def of(cls, state: JobState) -> Self:
        return cls.model_construct(**{name: getattr(state, name) for name in cls.model_fields})


class JobList(BaseModel):
    jobs: list[Job]


def _n_values(value: Any) -> int:
    """Count the names and values in a filter, which is not deep: bodies are limited to 64 levels."""
    if isinstance(value, dict):
        return sum(1 + _n_values(inner) for inner in value.values())
    return sum(map(_n_values, value)) if isinstance(value, list) else 1
