"""The shapes of answers, for OpenAPI."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel

from ...collection import Explanation, Hit, Item
from ..jobs import JobState
from ..requests import CollectionInfo, Found, Written
from ..snapshots import SnapshotInfo
from .types import Label, Metadata

__all__ = [
    "Collections",
    "Encoded",
    "FoundAnswer",
    "Health",
    "HitAnswer",
    "Info",
    "ItemAnswer",
    "Items",
    "Job",
    "JobList",
    "Predicted",
    "Restored",
    "SearchAnswer",
    "Snapshot",
    "SnapshotList",
    "Why",
    "WriteAnswer",
]


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
    """A stored item; ``code_from`` says whether its code follows from its label or its vector.

    ``encoder`` names the model that encoded the vector.
    """

    id: int
    label: Label | None
    metadata: Metadata
    reference: str | None
    code_from: str
    encoder: str | None
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
    views: list[tuple[str, float]]
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
            views=explanation.views,
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
