"""The map: all items in the plane, to look at, to select and to label; and the codewords in another one beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from ..._common.labels import Label
from ...collection.collection import Collection
from ...labeling.lesson import Lesson
from ...learning.graphs.layout import in_unit_square, map_codewords
from ..errors import ConflictError
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..searcher import Searcher, existing_items
from ..workspace import Workspace
from .rendering import Card, cards_of, class_names, label_name, may_write, render

routes = APIRouter(include_in_schema=False)
# Coordinates are whole numbers up to it: finer than any screen, and short in JSON.
_SCALE = 10_000
_CODE_BITS = 4  # 16 colors can be told apart
_COINCIDE, _SPREAD = 0.04, 0.045  # shares of the width of a map: nearer names cannot be read apart
_TABLE_ROWS = 100  # items in the table below the map
_MOST_CARDS = 60  # of selected items


@dataclass(frozen=True, slots=True)
class CodewordPoint:
    """A class, where its codeword is on the map, and the class whose codeword is nearest to it."""

    label: Label
    x: float
    y: float
    nearest: Label | None
    distance: int


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
        "codewords": await in_thread(_codewords, searcher),
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


@routes.get("/explore/{name}/cards")
async def some_cards(request: Request, searcher: SearcherDep, ids: str = "") -> Response:
    """Return the cards of some items, as a part of a page."""
    try:
        wanted = sorted({int(item) for item in ids.split(",") if item})[:_MOST_CARDS]
    except ValueError as error:
        raise ValueError("ids holds something that is not a number. Give numbers with commas between them.") from error
    return render("map/cards.html", request, name=searcher.name, cards=await in_thread(_cards, searcher, wanted))


def _items(workspace: Workspace) -> dict[str, Any]:
    """Return lists with one entry per item; ``label`` numbers the entries of ``labels``, -1 for none."""
    lesson = workspace.lesson()
    if lesson is None or workspace.prepare_map() is not None:
        raise ConflictError("The map is not prepared yet. Reload the page and wait until it is.")
    points, found = lesson.map(), lesson.predictions()
    labels = [each.label for each in lesson.state().classes]
    number_of = {label: number for number, label in enumerate(labels)} | {None: -1}
    with workspace.searcher.opened() as collection:
        first_bits = collection.codes(points.ids).to_signs()[:, :_CODE_BITS] > 0
    return {
        "version": lesson.version,
        "labels": list(map(label_name, labels)),
        "ids": list(map(str, points.ids.tolist())),  # scripts hold numbers of 53 bits
        "x": np.round(_SCALE * points.x).astype(int).tolist(),
        "y": np.round(_SCALE * points.y).astype(int).tolist(),
        "label": [number_of[label] for label in found.labels],
        "confidence": np.round(100 * np.asarray(found.confidences)).astype(int).tolist(),
        "given": np.asarray(found.given).astype(int).tolist(),
        "code": (first_bits @ (1 << np.arange(first_bits.shape[1]))).tolist(),
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


def _codewords(searcher: Searcher) -> list[CodewordPoint]:
    with searcher.opened() as collection:
        return codeword_points(collection)


def codeword_points(collection: Collection) -> list[CodewordPoint]:
    """Return where the codewords of all classes that are shown are; none if the hasher has none."""
    all_words, all_names = collection.hasher.class_part.class_words, class_names(collection)
    shown = [(place, name) for place, name in enumerate(all_names) if name is not None]
    if all_words is None or len(shown) < 2:
        return []
    words, names = all_words[[place for place, _ in shown]], [name for _, name in shown]
    distances = (words[:, None] != words[None]).sum(axis=2)
    np.fill_diagonal(distances, words.shape[1] + 1)
    return [
        CodewordPoint(names[row], float(x), float(y), names[int(near.argmin())], int(near.min()))
        for row, ((x, y), near) in enumerate(zip(_apart(map_codewords(words)), distances, strict=True))
    ]


def _apart(points: np.ndarray) -> np.ndarray:
    """Return points of which those that coincide stand around their common one: short words fill a plane poorly."""
    spread = points.astype(np.float64).copy()
    _, groups = np.unique(np.round(points / _COINCIDE), axis=0, return_inverse=True)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) > 1:
            angles = 2 * np.pi * np.arange(len(members)) / len(members)
            radius = min(0.3, _SPREAD * len(members))
            spread[members] += radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return in_unit_square(spread)
