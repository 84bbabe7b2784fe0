"""The map: all items in the plane, to look at, to select, to label and to list."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from ...labeling.lesson import Lesson
from ..errors import ConflictError
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..http.schemas import Id
from ..searcher import Searcher, existing_items
from ..workspace import Workspace
from .question import Question
from .rendering import Card, cards_of, label_name, may_write, render

routes = APIRouter(include_in_schema=False)
# Coordinates are whole numbers up to it: finer than any screen, and short in JSON.
_SCALE = 10_000
_TABLE_ROWS = 100  # items in the table below the map
_MOST_CARDS = 60  # of selected items


class Selection(BaseModel):
    """The ids of items that somebody selected."""

    model_config = ConfigDict(extra="forbid")
    ids: Annotated[list[Id], Field(min_length=1)]


@routes.get("/explore/{name}/map")
async def show_map(request: Request, searcher: SearcherDep, service: ServiceDep, part: str = "") -> Response:
    """Show the map, or how far its preparation is."""
    workspace = service.workspace(searcher.name)
    info = await in_thread(searcher.info)
    possible = info.vectors is not None and info.n_items > 1
    writable = info.writable and may_write(request)
    job = await in_thread(workspace.prepare_map) if possible and writable else None
    lesson = await in_thread(workspace.lesson) if job is None and possible and writable else None
    values: dict[str, Any] = {
        "name": searcher.name,
        "active": "map",
        "info": info,
        "possible": possible,
        "writable": writable,
        "job": job,
        "table": [] if lesson is None else await in_thread(_table, searcher, lesson),
        "knows_confidence": lesson is not None and await in_thread(lambda: lesson.state().knows_confidence),
        "is_ready": lesson is not None,
    }
    return render("map/state.html" if part else "map/page.html", request, **values)


@routes.post("/explore/{name}/map/prepare")
async def prepare(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Begin a preparation anew that has failed or was canceled, and go back to the page."""
    await in_thread(lambda: service.workspace(searcher.name).prepare_map(retry=True))
    return RedirectResponse(f"/explore/{searcher.name}/map", 303)


@routes.get("/explore/{name}/map/items")
async def map_items(searcher: SearcherDep, service: ServiceDep) -> Response:
    """Return where all items are, and what is predicted for them."""
    return JSONResponse(await in_thread(_items, service.workspace(searcher.name)))


@routes.post("/explore/{name}/selections")
async def remember_selection(body: Selection, searcher: SearcherDep, service: ServiceDep) -> Response:
    """Remember selected items for a while; return the address of the page that lists them."""
    workspace = service.workspace(searcher.name)
    selection = await in_thread(workspace.add_selection, np.unique(np.array(body.ids, np.int64)))
    return JSONResponse({"address": f"/explore/{searcher.name}{Question(selection=selection).address()}"})


@routes.get("/explore/{name}/cards")
async def some_cards(request: Request, searcher: SearcherDep, ids: str = "") -> Response:
    """Return the cards of some items, as a part of a page."""
    try:
        wanted = sorted({int(item) for item in ids.split(",") if item})[:_MOST_CARDS]
    except ValueError as error:
        raise ValueError("ids holds something that is not a number. Give numbers with commas between them.") from error
    return render("map/cards.html", request, name=searcher.name, cards=await in_thread(_cards, searcher, wanted))


def _items(workspace: Workspace) -> dict[str, Any]:
    """Return lists with one entry per item; ``label`` numbers the entries of ``labels``, the most used first."""
    lesson = workspace.lesson()
    if lesson is None or workspace.prepare_map() is not None:
        raise ConflictError("The map is not prepared yet. Reload the page and wait until it is.")
    points, found = lesson.map(), lesson.predictions()
    used = {each.label: each.n_given + each.n_predicted for each in lesson.state().classes}
    labels = sorted((label for label, n_items in used.items() if n_items), key=lambda label: -used[label])
    number_of = {label: number for number, label in enumerate(labels)} | {None: -1}
    return {
        "labels": list(map(label_name, labels)),
        "ids": list(map(str, points.ids.tolist())),  # scripts hold numbers of 53 bits
        "x": np.round(_SCALE * points.x).astype(int).tolist(),
        "y": np.round(_SCALE * points.y).astype(int).tolist(),
        "label": [number_of[label] for label in found.labels],
        "confidence": np.round(100 * np.asarray(found.confidences)).astype(int).tolist(),
        "given": np.asarray(found.given).astype(int).tolist(),
    }


def _table(searcher: Searcher, lesson: Lesson) -> list[tuple[Card, Any, float | None]]:
    """Return the first items with what is predicted for them, for those who cannot see a map."""
    found, knows = lesson.predictions(lesson.ids[:_TABLE_ROWS]), lesson.state().knows_confidence
    ids = found.ids.tolist()
    cards = {card.id: card for card in _cards(searcher, ids)}
    sure = [each if knows or given else None for each, given in zip(found.confidences, found.given, strict=True)]
    rows = zip(ids, found.labels, sure, strict=True)
    return [(cards[item], label, confidence) for item, label, confidence in rows if item in cards]


def _cards(searcher: Searcher, ids: list[int]) -> list[Card]:
    with searcher.opened() as collection:
        return cards_of(collection, searcher.name, existing_items(collection, ids)) if ids else []
