"""Clients of the search service: :class:`Client` waits for answers, :class:`AsyncClient` can be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .answers import CollectionInfo, ItemPage, Job, Snapshot, Written
    from .asynchronous import AsyncClient, AsyncCollection
    from .synchronous import Client, RemoteCollection
    from .transport import Retries, ServiceProblem, ServiceUnreachable

__all__ = [
    "AsyncClient",
    "AsyncCollection",
    "Client",
    "CollectionInfo",
    "ItemPage",
    "Job",
    "RemoteCollection",
    "Retries",
    "ServiceProblem",
    "ServiceUnreachable",
    "Snapshot",
    "Written",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "answers": ["CollectionInfo", "ItemPage", "Job", "Snapshot", "Written"],
        "asynchronous": ["AsyncClient", "AsyncCollection"],
        "synchronous": ["Client", "RemoteCollection"],
        "transport": ["Retries", "ServiceProblem", "ServiceUnreachable"],
    },
    libraries=("httpx",),
    extra="serve",
)
