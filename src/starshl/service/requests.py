"""What a searcher is asked, and what a search finds, as plain frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from .._common.labels import Label
from ..collection.collection import Collection
from ..collection.explanation import Explanation
from ..collection.items import Item
from ..collection.search import Hit
from ..exceptions import UnknownIdError
from .errors import UnknownError


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which items may be found; ``where`` is JSON, so that filters can be compared."""

    where: str | None = None
    labels: tuple[Label, ...] | None = None
    among: tuple[int, ...] | None = None

    @classmethod
    def of(cls, *, where: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Return options whose filter on metadata is given as a dictionary."""
        return cls(where=None if where is None else json.dumps(where, sort_keys=True), **options)

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of a collection's methods."""
        return {
            "where": None if self.where is None else json.loads(self.where),
            "labels": None if self.labels is None else list(self.labels),
            "among": None if self.among is None else list(self.among),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(Filters):
    """How to search; requests with equal options are searched together.

    With ``radius``, all items within that distance are found and the nearest ``k`` returned; options about the order of
    the nearest are refused then.
    """

    k: int = 10
    radius: int | None = None
    rescore: bool | None = None
    oversample: int | None = None
    metric: str | None = None
    class_first: int | None = None
    reject: float | None = None
    by_scores: bool = False
    explain: bool = False

    def __post_init__(self) -> None:
        if self.radius is None:
            return
        # rescore=False asks for what happens anyway, and an explanation states distances by the metric.
        without_effect = {
            "rescore": self.rescore,
            "oversample": self.oversample is not None,
            "class_first": self.class_first is not None,
            "metric": self.metric is not None and not self.explain,
            "by_scores": self.by_scores,
        }
        for name, is_given in without_effect.items():
            if is_given:
                raise ValueError(
                    f"{name} says how the k nearest items are chosen, and does nothing with radius, which compares "
                    "codes only. Leave one of them out."
                )

    def batch_key(self) -> tuple[object, ...]:
        """Return what distinguishes options; 1 and True are equal in Python, and differ as labels."""
        kinds = None if self.labels is None else tuple(type(label).__name__ for label in self.labels)
        return self, kinds


@dataclass(frozen=True, slots=True)
class Found:
    """The items found for one query, how many there were before the rest was left out, and why they match.

    ``novelty`` is how unlike the training rows the query is, if the options say when to reject it.
    """

    hits: list[Hit]
    total: int
    explanations: list[Explanation | None] | None = None
    novelty: float | None = None


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items to store; lists have one entry per item."""

    vectors: Sequence[Sequence[float]] | np.ndarray
    ids: Sequence[int] | None = None
    labels: Sequence[Label | None] | None = None
    metadata: Sequence[Mapping[str, Any]] | None = None
    references: Sequence[str | None] | None = None
    previews: Sequence[bytes | None] | None = None


@dataclass(frozen=True, slots=True)
class WriteKey:
    """What makes a repeated write recognizable: a key that the sender chose, and the digest of what it sent."""

    key: str
    digest: str


def present_items(collection: Collection, ids: Sequence[int] | np.ndarray) -> list[Item]:
    """Return items by id, without those that were removed since their ids were read."""
    try:
        return collection.get(ids)
    except KeyError:
        # Those that are left can be read one by one.
        return [item for number in np.asarray(ids).tolist() for item in _present(collection, number)]


@contextmanager
def unknown_ids() -> Iterator[None]:
    """Raise the error of an unknown id as one of the service."""
    try:
        yield
    except UnknownIdError as error:
        raise UnknownError(str(error)) from error


def _present(collection: Collection, item: int) -> list[Item]:
    try:
        return collection.get([item])
    except KeyError:
        return []


class Observer(Protocol):
    """Gets told about each batch and each change, by the thread that did it."""

    def searched(self, collection: str, n_requests: int, n_queries: int, seconds: float) -> None: ...

    def encoded(self, collection: str, n_requests: int, n_rows: int, seconds: float) -> None: ...

    def changed(self, collection: str, kind: str, n_items: int, seconds: float) -> None: ...


class Silent:
    """Counts nothing."""

    def searched(self, collection: str, n_requests: int, n_queries: int, seconds: float) -> None: ...

    def encoded(self, collection: str, n_requests: int, n_rows: int, seconds: float) -> None: ...

    def changed(self, collection: str, kind: str, n_items: int, seconds: float) -> None: ...
