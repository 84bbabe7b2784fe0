"""The map: all items in the plane, to look at, to select and to label; and the codewords."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ....teaching import Lesson
from ...errors import ConflictError
from ...places import codeword_places, item_places
from ...present import present_items
from ...searcher import Searcher
from ...workshop import Workshop
from ..parts import InCollection, TheService, in_thread
from .cards import Card, cards_of
from .rendering import may_write, render

__all__ = ["routes"]

routes = APIRouter(include_in_schema=False)
_LISTED = 100  # items in the table below the map
_MOST_CARDS = 60  # of selected items


@routes.get("/explore/{name}/map")
async def show_map(request: Request, collection: InCollection, service: TheService, part: str = "") -> Response:
    """Show the map, or how far its preparation is."""
    workshop = service.workshop(collection.name)
    info = await in_thread(collection.info)
    possible = info.vectors is not None and info.n_items > 1
    writable = info.writable and may_write(request)
    job = await in_thread(lambda: workshop.prepare_map(again=not part)) if possible and writable else None
    lesson = await in_thread(workshop.lesson) if job is None and possible and writable else None
    values: dict[str, Any] = {
        "name": collection.name,
        "active": "map",
        "info": info,
        "possible": possible,
        "writable": writable,
        "job": job,
        "listed": [] if lesson is None else await in_thread(_listed, collection, lesson),
        "codewords": await in_thread(_codewords, collection),
        "is_ready": lesson is not None,
    }
    return render("map/state.html" if part else "map/page.html", request, **values)


@routes.get("/explore/{name}/map/items")
async def map_items(collection: InCollection, service: TheService) -> Response:
    """Return where all items are, and what is believed of them."""
    return JSONResponse(await in_thread(_places, collection, service.workshop(collection.name)))


@routes.get("/explore/{name}/cards")
async def some_cards(request: Request, collection: InCollection, ids: str = "") -> Response:
    """Return the cards of some items, as a part of a page."""
    try:
        chosen = sorted({int(item) for item in ids.split(",") if item})[:_MOST_CARDS]
    except ValueError as error:
        raise ValueError("ids holds something that is not a number. Give numbers with commas between them.") from error
    return render("map/cards.html", request, name=collection.name, cards=await in_thread(_cards, collection, chosen))


def _places(collection: Searcher, workshop: Workshop) -> dict[str, Any]:
    lesson = workshop.lesson()
    if lesson is None or workshop.prepare_map(again=False) is not None:
        raise ConflictError("The map is not prepared yet. Reload the page and wait until it is.")
    with collection.opened() as opened:
        return item_places(lesson, opened)


def _listed(collection: Searcher, lesson: Lesson) -> list[tuple[Card, Any, float]]:
    """Return the first items with what is believed of them, for those who cannot see a map."""
    found = lesson.predictions(lesson.ids[:_LISTED])
    ids = found.ids.tolist()
    cards = {card.id: card for card in _cards(collection, ids)}
    rows = zip(ids, found.labels, found.confidences.tolist(), strict=True)
    return [(cards[item], label, confidence) for item, label, confidence in rows if item in cards]


def _cards(collection: Searcher, ids: list[int]) -> list[Card]:
    with collection.opened() as opened:
        return cards_of(opened, collection.name, present_items(opened, ids)) if ids else []


def _codewords(collection: Searcher) -> Any:
    with collection.opened() as opened:
        return codeword_places(opened)
