"""Clients of the search service: :class:`Client` waits for answers, :class:`AsyncClient` can be awaited."""

from __future__ import annotations

from .._common.extras import require
from .answers import CollectionInfo, Explanation, Found, Hit, Item, ItemPage, Job, Prediction, Snapshot, Written
from .asynchronous import AsyncClient, AsyncCollection
from .synchronous import Client, RemoteCollection
from .transport import Retries, ServiceProblem, ServiceUnreachable

require("httpx", extra="serve")

__all__ = [
    "AsyncClient",
    "AsyncCollection",
    "Client",
    "CollectionInfo",
    "Explanation",
    "Found",
    "Hit",
    "Item",
    "ItemPage",
    "Job",
    "Prediction",
    "RemoteCollection",
    "Retries",
    "ServiceProblem",
    "ServiceUnreachable",
    "Snapshot",
    "Written",
]
