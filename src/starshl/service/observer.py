"""Observer: who is told of batches and changes, such as the metrics of the service."""

from __future__ import annotations


class Observer:
    """Is told of each batch and each change, by the thread that did it; this one ignores all of them."""

    def searched(self, collection: str, n_requests: int, n_queries: int, seconds: float) -> None:
        """Requests with this many queries were searched for together."""

    def encoded(self, collection: str, n_requests: int, n_rows: int, seconds: float) -> None:
        """Requests with this many rows were encoded together."""

    def changed(self, collection: str, kind: str, n_items: int, seconds: float) -> None:
        """A change of this kind was stored."""
