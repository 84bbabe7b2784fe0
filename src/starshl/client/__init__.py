"""Clients of the search service: :class:`Client` waits for answers, :class:`AsyncClient` can be awaited."""

from .._extras import require

require("httpx", extra="serve")

from .answers import CollectionInfo, Explanation, Found, Hit, Item, ItemPage, Job, Prediction, Snapshot, Written  # noqa: E402  # after the check for what it needs
from .asynchronous import AsyncClient, AsyncCollection  # noqa: E402
from .problems import ServiceProblem  # noqa: E402
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
    "Snapshot",
    "Written",
]
