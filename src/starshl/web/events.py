"""What a searcher tells about its work, for those who count and time it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Observer", "Silent"]


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
