"""What the search service answers besides what a collection does: the server fills these values, clients get them back.

Neither side needs the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from .._common.labels import Label
from ..collection.answers import Item, JsonAnswer

JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "canceled", "interrupted"]


@dataclass(frozen=True, slots=True)
class CollectionInfo(JsonAnswer):
    """What a collection is and can do.

    ``kind`` is what its items are: "pictures", "texts" or "vectors". ``title`` names the metadata field to show.
    ``hit_probabilities`` tells whether hits have a probability, and searches take ``min_probability``;
    ``knows_probabilities`` whether enough labels were given to the fit to tell how right probabilities are.
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
    hit_probabilities: bool = False
    knows_probabilities: bool = True


@dataclass(frozen=True, slots=True)
class GuessState(JsonAnswer):
    """The guessed labels of a collection: for how many items each, the most frequent first.

    ``is_current`` tells whether nothing has changed since that they follow from, None if no labels were guessed; ``by``
    is "lesson" or "hasher", and ``job`` the id of the job that guesses them anew, if one does. Without
    ``knows_confidence``, too few labels were given to tell how sure guesses are.
    """

    is_current: bool | None
    by: str | None
    counts: list[tuple[Label, int]]
    job: str | None = None
    knows_confidence: bool = True

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return super(GuessState, cls).of({**answer, "counts": [*map(tuple, answer["counts"])]})


@dataclass(frozen=True, slots=True)
class ItemPage(JsonAnswer):
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
class Written(JsonAnswer):
    """A change: the ids that it was about, and how many items it changed.

    ``ids`` is None if a filter has removed more than 1,000 items.

    ``repeated`` if an earlier attempt with the same key had stored it. That is why writes return it, where a
    collection, whose writes cannot get lost on the way, returns ids, items or nothing. ``notes`` say how
    many texts were cut.
    """

    ids: list[int] | None
    n_items: int
    repeated: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Snapshot(JsonAnswer):
    """A snapshot: its name, bytes, and when it was made, in seconds since 1970."""

    name: str
    size: int
    created: float


@dataclass(frozen=True, slots=True)
class Job(JsonAnswer):
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
