"""The first page: the collections, and what to do with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..._version import __version__
from ...client.answers import CollectionInfo
from ..http.dependencies import ServiceDep, in_thread
from ..searcher import Searcher, existing_items
from .rendering import Card, cards_of, may_write, render

routes = APIRouter(include_in_schema=False)
_N_CARDS = 14  # pictures of a collection, in one or two rows


@dataclass(frozen=True, slots=True)
class _Summary:
    """A collection on the first page."""

    info: CollectionInfo
    cards: list[Card]
    n_labeled: int
    n_classes: int
    can_teach: bool


@routes.get("/")
async def home(request: Request, service: ServiceDep) -> Response:
    """List the collections with a few of their items."""
    collections = await in_thread(lambda: [_summary(searcher) for searcher in service.searchers.values()])
    return render("home.html", request, collections=collections, version=__version__, may_write=may_write(request))


def _summary(searcher: Searcher) -> _Summary:
    info = searcher.info()
    with searcher.opened() as collection:
        ids = collection.ids
        spread = ids[np.unique(np.linspace(0, len(ids) - 1, _N_CARDS).astype(int))] if len(ids) else ids
        cards = cards_of(collection, info.name, existing_items(collection, spread))
        counts = collection.label_counts()
    return _Summary(info, cards, sum(counts.values()), len(counts), info.vectors is not None and info.writable)
