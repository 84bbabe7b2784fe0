"""Which items a write is about, and the receipts by which a second attempt is recognized."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..answers import Written
from ..collection import Collection
from .errors import KeyReusedError
from .requests import Filters, WriteKey

__all__ = ["Chosen", "Given", "Matching", "New", "receipting", "stored_before"]


class Chosen(Protocol):
    """The items of a write."""

    def ids(self, collection: Collection) -> np.ndarray:
        """Return their ids in the present state of a collection."""

    def written(self, first: int, n_items: int, *, repeated: bool) -> Written:
        """Return what to answer once they are stored; ``first`` is the first of their ids."""


@dataclass(frozen=True, slots=True)
class Given:
    """Items whose ids the sender named."""

    named: Sequence[int]

    def ids(self, collection: Collection) -> np.ndarray:
        return np.asarray(list(self.named), np.int64)

    def written(self, first: int, n_items: int, *, repeated: bool) -> Written:
        return Written(list(self.named), len(self.named), repeated)


@dataclass(frozen=True, slots=True)
class New:
    """Items that get the next free ids."""

    n_items: int

    def ids(self, collection: Collection) -> np.ndarray:
        held = collection.ids
        first = int(held[-1]) + 1 if len(held) else 0
        if first + self.n_items > 2**63:
            raise ValueError("The largest id is in use, so there are no higher ones. Give ids that are free.")
        return np.arange(first, first + self.n_items, dtype=np.int64)

    def written(self, first: int, n_items: int, *, repeated: bool) -> Written:
        return Written(list(range(first, first + self.n_items)), self.n_items, repeated)


@dataclass(frozen=True, slots=True)
class Matching:
    """Items that pass filters when it is their turn; there may be many, so the answer counts them only."""

    filters: Filters

    def ids(self, collection: Collection) -> np.ndarray:
        return collection.find(**self.filters.filters())

    def written(self, first: int, n_items: int, *, repeated: bool) -> Written:
        return Written([], n_items, repeated)


def receipting(collection: Collection, key: WriteKey | None, ids: np.ndarray) -> AbstractContextManager[None]:
    """Store a receipt with the next change, if the write has a key."""
    if key is None:
        return nullcontext()
    receipt = {"digest": key.digest, "first": int(ids[0]) if len(ids) else 0, "n": len(ids)}
    return collection.receipting(key.key, json.dumps(receipt))


def stored_before(collection: Collection, key: WriteKey | None, chosen: Chosen) -> Written | None:
    """Return what an earlier write with this key was answered, None if there was none."""
    text = None if key is None else collection.receipt(key.key)
    if key is None or text is None:
        return None
    receipt = json.loads(text)
    if receipt["digest"] != key.digest:
        raise KeyReusedError(
            "This idempotency key was used for another request before. Use a new key for each write; use the same key "
            "only to send the same write again."
        )
    return chosen.written(receipt["first"], receipt.get("n", 0), repeated=True)
