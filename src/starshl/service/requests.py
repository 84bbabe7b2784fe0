"""What is written to a searcher, as plain frozen values, and who is told about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._common.labels import Label
from ..collection.answers import Item
from ..collection.collection import Collection
from ..exceptions import UnknownIdError
from .errors import UnknownError


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
