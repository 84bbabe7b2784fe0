"""The viewer: one item as large as the screen, with all that is known about it; and the original picture files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from ...collection.answers import Item
from ...collection.importing.originals import find_original
from ...data.features.picture_files import open_picture, preview_of
from ...exceptions import UnknownIdError
from ..errors import UnknownError
from ..http.dependencies import SearcherDep, in_thread
from ..searcher import Searcher
from .query_description import PredictedClass, predicted_classes
from .rendering import Card, cards_of, render

routes = APIRouter(include_in_schema=False)
_SCREEN = 2048  # pixels along a side of what browsers cannot show as it is
# What browsers show as it is, by its first bytes; nothing else is ever sent to one as it is.
_SHOWN_AS_IT_IS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}
_NOTHING_RUNS = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, max-age=60"}


@dataclass(frozen=True, slots=True)
class View:
    """An item in the viewer: ``original`` says whether its picture file is there, ``guesses`` what it may be.

    Without ``knows_probabilities``, nobody can tell how right the percentages beside ``guesses`` are.
    """

    item: Item
    card: Card
    original: bool
    guesses: list[PredictedClass]
    knows_probabilities: bool


@routes.get("/explore/{name}/items/{item}")
async def view(item: int, request: Request, searcher: SearcherDep) -> Response:
    """Show one item, as a part of a page."""
    found = await in_thread(_view, searcher, item)
    return render("viewer.html", request, name=searcher.name, view=found)


@routes.get("/explore/{name}/originals/{item}")
async def original(item: int, searcher: SearcherDep) -> Response:
    """Return the picture file that an item was made from, or as much of it as a screen shows."""
    return await in_thread(_original, searcher, item)


def _view(searcher: Searcher, number: int) -> View:
    with searcher.opened() as collection:
        (item,) = collection.get([number])
        cards = cards_of(collection, searcher.name, [item])
        if not cards:
            raise UnknownIdError(number)
        vector = collection.vectors([number])[0] if collection.vector_dtype else None
        guesses = [] if vector is None else predicted_classes(collection, vector)
        knows = collection.hasher.class_part.fit_summary.knows_probabilities
        return View(item, cards[0], find_original(collection, item) is not None, guesses, knows)


def _original(searcher: Searcher, number: int) -> Response:
    with searcher.opened() as collection:
        (item,) = collection.get([number])
        path = find_original(collection, item)
    if path is None:
        raise UnknownError(f"The picture file of item {number} is not in the folder that it came from.")
    kind = _kind_of(path)
    if kind is None:
        content = preview_of(open_picture(path, name=repr(item.reference)), _SCREEN)
        return Response(content, media_type="image/webp", headers=_NOTHING_RUNS)
    return FileResponse(path, media_type=kind, headers=_NOTHING_RUNS)


def _kind_of(path: Path) -> str | None:
    with path.open("rb") as file:
        first = file.read(12)
    if first[:4] == b"RIFF" and first[8:] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SHOWN_AS_IT_IS.items() if first.startswith(start)), None)
