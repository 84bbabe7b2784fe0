"""What the search service answers: the server fills these values, and its clients get them back.

Neither side needs the other. A client ignores fields that only a newer service knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypeAlias

from .._common.labels import Label

JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "canceled", "interrupted"]


class _Answer:
    __slots__ = ()

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Return the answer in a JSON object."""
        names = [each.name for each in fields(cls)]  # type: ignore[arg-type]  # every subclass is a dataclass
        return cls(**{name: answer[name] for name in names if name in answer})

    @classmethod
    def all_in(cls, name: str) -> Callable[[Mapping[str, Any]], list[Self]]:
        """Return a function that reads the answers in the list of this name in a JSON object."""
        return lambda answer: [cls.of(each) for each in answer[name]]


@dataclass(frozen=True, slots=True)
class CollectionInfo(_Answer):
    """What a collection is and can do.

    ``kind`` is what its items are: "pictures", "texts" or "vectors". ``title`` names the metadata field to show.
    """

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
    kind: str = "vectors"
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Item(_Answer):
    """A stored item; ``code_from`` says whether its code follows from its label or its vector.

    ``model_digest`` is that of the model that encoded the vector.
    """

    id: int
    label: Label | None
    metadata: dict[str, Any]
    reference: str | None
    code_from: str
    model_digest: str | None
    vector: list[float] | None = None


@dataclass(frozen=True, slots=True)
class ItemPage(_Answer):
    """Items by id; ``next`` is what to pass as ``after`` for more, None if there are no more.

    ``notes`` say what could be asked better.
    """

    items: list[Item]
    next: int | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return super(ItemPage, cls).of({**answer, "items": [Item.of(item) for item in answer["items"]]})


@dataclass(frozen=True, slots=True)
class Explanation(_Answer):
    """Why an item matches; ``text`` puts it into words."""

    text: str
    agreeing: list[int]
    differing: list[int]
    query_class: Label | None
    item_class: Label | None
    kernels: list[tuple[str, float]]
    views: list[tuple[str, float]]
    training_rows: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Hit(_Answer):
    """An item near a query: the distance of codes, and that of vectors if these decided the order."""

    id: int
    distance: int | float
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
    """The hits of one query, nearest first; ``total`` counts also those left out of a search by radius.

    ``novelty`` is how unlike the training rows the query is, from 0 to 1, if the search was to ``reject`` novel ones.
    """

    hits: list[Hit]
    total: int
    novelty: float | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls([Hit.of(hit) for hit in answer["hits"]], answer["total"], answer.get("novelty"))


@dataclass(frozen=True, slots=True)
class Written(_Answer):
    """A change: the ids that it was about, and how many items it changed; a removal by filter has no ids.

    ``repeated`` if an earlier attempt with the same key had stored it.
    """

    ids: list[int]
    n_items: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Prediction(_Answer):
    """Predicted labels, and the probabilities of all classes if they were asked for.

    The label of a text without a known word is None, and ``notes`` name such texts.
    """

    labels: list[Label | None]
    classes: list[Label] | None = None
    probabilities: list[list[float]] | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Snapshot(_Answer):
    """A snapshot: its name, bytes, and when it was made, in seconds since 1970."""

    name: str
    size: int
    created: float


@dataclass(frozen=True, slots=True)
class Job(_Answer):
    """Work in the background; times are seconds since 1970.

    A job is "interrupted" if the service ended while it waited or ran; ``error`` then says what is stored and what to
    do. ``key`` is the one of an import, which goes on if the same lines are sent with it again.
    """

    id: str
    kind: str
    collection: str
    state: JobState
    stage: str
    done: int
    total: int | None
    created: float
    started: float | None
    ended: float | None
    error: str | None
    result: dict[str, Any] | None
    key: str | None = None
