"""Routes for pictures: search by one that is sent, and see the previews of items."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import HTTPException, Query, Request
from fastapi.responses import Response

from ..._json import parse_json
from ...collection import Preview
from ..raw import picture_vector, preview
from .answers import SearchAnswer, search_answer
from .items import ItemId
from .parts import InCollection, answer, in_thread, router
from .schemas import SearchSettings
from .types import Label, Metadata

__all__ = ["preview_answer", "routes"]

routes = router("pictures", "/collections/{name}")

_TYPES = ("image/jpeg", "image/png", "image/webp")
_FILE: dict[str, Any] = {name: {"schema": {"type": "string", "format": "binary"}} for name in _TYPES}


@routes.post("/search/picture", openapi_extra={"requestBody": {"required": True, "content": _FILE}})
async def search_by_picture(
    request: Request,
    collection: InCollection,
    k: Annotated[int, Query(ge=1, le=10_000, description="How many items to find.")] = 10,
    labels: Annotated[list[str] | None, Query(max_length=1000, description="Only items with these labels.")] = None,
    where: Annotated[str | None, Query(max_length=10_000, description="A filter on metadata, as JSON.")] = None,
    radius: Annotated[int | None, Query(ge=0, le=1_000_000, description="Only items within this distance.")] = None,
    rescore: Annotated[bool | None, Query(description="Compare kept vectors.")] = None,
    explain: Annotated[bool, Query(description="Say why items match.")] = False,
) -> SearchAnswer:
    """Find the nearest items of a picture, which is the body: a JPEG, PNG or WebP file."""
    _check_type(request)
    wanted: list[Label] | None = None if labels is None else list(labels)
    settings = SearchSettings(k=k, labels=wanted, where=_read_filter(where), rescore=rescore, explain=explain)
    options = replace(settings.to_options(), radius=radius)
    vectors = await answer(picture_vector(collection, await request.body()))
    found = await answer(collection.search(vectors, options=options))
    return search_answer(found, [] if where is None else await in_thread(collection.notes, options))


@routes.get(
    "/items/{item}/preview",
    response_class=Response,
    responses={200: {"description": "A small picture", "content": _FILE}},
)
async def get_preview(item: ItemId, collection: InCollection) -> Response:
    """Return the small picture of an item."""
    return preview_answer(await in_thread(preview, collection, item))


def preview_answer(found: Preview) -> Response:
    """Return a preview as an answer; nothing in it may run, whatever a browser takes it for."""
    headers = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, max-age=60"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _read_filter(text: str | None) -> Metadata | None:
    found = None if text is None else parse_json(text)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"where is {str(text)[:80]!r}; it must be a JSON object, such as " + '{"price": {"<": 10}}.')
    return found


def _check_type(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TYPES:
        given = f"has the type {kind[:80]!r}" if kind else "does not say what type it has"
        raise HTTPException(
            415,
            f"The body {given}. Send a picture with the header Content-Type: {', '.join(_TYPES[:2])} or {_TYPES[2]}.",
        )
