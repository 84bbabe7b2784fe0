"""Clients of the search service: :class:`Client` waits for answers, :class:`AsyncClient` can be awaited."""

from .._extras import require
from ..answers import CollectionInfo, Explanation, Found, Hit, Item, ItemPage, Job, Prediction, Snapshot, Written

require("httpx", extra="serve")

from .asynchronous import AsyncClient, AsyncCollection  # noqa: E402  # after the check for what it needs
from .problems import ServiceProblem, ServiceUnreachable  # noqa: E402
from .retries import Retries  # noqa: E402
from .synchronous import Client, RemoteCollection  # noqa: E402

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
