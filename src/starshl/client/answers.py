"""What the service answers, as frozen values; fields of a newer service are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeAlias

__all__ = [
    "CollectionInfo",
    "Explanation",
    "Found",
    "Hit",
    "Item",
    "ItemPage",
    "Job",
    "Label",
    "Prediction",
    "Snapshot",
    "Written",
]

Label: TypeAlias = str | int | bool


class _Answer:
    __slots__ = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Return the answer in a JSON object."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # every subclass is a dataclass
        return cls(**{name: answer[name] for name in names if name in answer})


@dataclass(frozen=True, slots=True)
class CollectionInfo(_Answer):
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


@dataclass(frozen=True, slots=True)
class Item(_Answer):
    """A stored item; ``code_from`` says whether its code follows from its label or its vector."""

    id: int
    label: Label | None
    metadata: dict[str, Any]
    reference: str | None
    code_from: str
    encoder: str | None
    vector: list[float] | None = None


@dataclass(frozen=True, slots=True)
class ItemPage(_Answer):
    """Some items by id, and where the next ones begin; None if there are no more."""

    items: list[Item]
    next: int | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls([Item.of(item) for item in answer["items"]], answer["next"])


@dataclass(frozen=True, slots=True)
class Explanation(_Answer):
    """Why an item matches; ``text`` puts it into words."""

    text: str
    agreeing: list[int]
    differing: list[int]
    query_class: Label | None
    item_class: Label | None
    kernels: list[Any]
    views: list[Any]
    training_rows: list[Any]


@dataclass(frozen=True, slots=True)
class Hit(_Answer):
    """An item near a query: the distance of codes, and that of vectors if these decided the order."""

    id: int
    distance: int
    rescored: float | None
    label: Label | None
    metadata: dict[str, Any]
    reference: str | None
    code_from: str
    explanation: Explanation | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        why = answer.get("explanation")
        return super(Hit, cls).of({**answer, "explanation": None if why is None else Explanation.of(why)})


@dataclass(frozen=True, slots=True)
class Found(_Answer):
    """The hits of one query, nearest first; ``total`` counts also those left out of a search by radius."""

    hits: list[Hit]
    total: int

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls([Hit.of(hit) for hit in answer["hits"]], answer["total"])


@dataclass(frozen=True, slots=True)
class Written(_Answer):
    """The ids that a write concerned; ``repeated`` if an earlier attempt had stored it."""

    ids: list[int]
    repeated: bool


@dataclass(frozen=True, slots=True)
class Prediction(_Answer):
    """Predicted labels, and the probabilities of all classes if they were asked for."""

    labels: list[Label]
    classes: list[Label] | None
    probabilities: list[list[float]] | None


@dataclass(frozen=True, slots=True)
class Snapshot(_Answer):
    """A snapshot: its name, bytes, and when it was made, in seconds since 1970."""

    name: str
    size: int
    created: float


@dataclass(frozen=True, slots=True)
class Job(_Answer):
    """Work in the background; ``state`` is "waiting", "running", "done", "failed" or "canceled"."""

    id: str
    kind: str
    collection: str
    state: str
    stage: str
    done: int
    total: int | None
    created: float
    started: float | None
    ended: float | None
    error: str | None
    result: dict[str, Any] | None
