"""Routes for pictures: search by one that is sent, encode, classify or store it, and see the previews of items."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query, Request
from fastapi.responses import Response

from ..._json import parse_json
from ...answers import Prediction, Written
from ...collection import Preview
from ...collection.previews import PREVIEW_TYPES
from ...features.picture_files import MEDIA_TYPES
from ..lessons import label_from_text
from ..raw import picture_and_preview, picture_vector, preview
from ..requests import NewItems
from ..searcher import Searcher
from .answers import Encoded, SearchAnswer, encoded_answer, search_answer
from .items import ItemId
from .parts import InCollection, Key, answer, in_thread, router
from .schemas import SearchSettings
from .search import notes_about
from .types import Id, Label, Metadata

__all__ = ["preview_answer", "routes"]

routes = router("pictures", "/collections/{name}")

_FILE: dict[str, Any] = {name: {"schema": {"type": "string", "format": "binary"}} for name in MEDIA_TYPES}
_TAKES_PICTURE: dict[str, Any] = {"requestBody": {"required": True, "content": _FILE}}


async def _picture(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in MEDIA_TYPES:
        given = f"has the type {kind[:80]!r}" if kind else "does not say what type it has"
        raise HTTPException(
            415,
            f"The body {given}. Send a picture with the header Content-Type: {', '.join(MEDIA_TYPES[:-1])} or "
            f"{MEDIA_TYPES[-1]}.",
        )
    return await request.body()


Picture = Annotated[bytes, Depends(_picture)]


@routes.post("/search/picture", openapi_extra=_TAKES_PICTURE)
async def search_by_picture(
    picture: Picture,
    collection: InCollection,
    k: Annotated[int, Query(ge=1, le=10_000, description="How many items to find.")] = 10,
    labels: Annotated[list[str] | None, Query(max_length=1000, description="Only items with these labels.")] = None,
    where: Annotated[str | None, Query(max_length=10_000, description="A filter on metadata, as JSON.")] = None,
    radius: Annotated[int | None, Query(ge=0, le=1_000_000, description="Only items within this distance.")] = None,
    rescore: Annotated[bool | None, Query(description="Compare kept vectors.")] = None,
    explain: Annotated[bool, Query(description="Say why items match.")] = False,
) -> SearchAnswer:
    """Find the nearest items of a picture, which is the body: a JPEG, PNG, WebP, GIF, BMP or TIFF file."""
    wanted = None if labels is None else await in_thread(_labels, collection, labels)
    settings = SearchSettings(k=k, labels=wanted, where=_read_object("where", where), rescore=rescore, explain=explain)
    options = replace(settings.to_options(), radius=radius)
    vectors = await answer(picture_vector(collection, picture))
    found = await answer(collection.search(vectors, options=options))
    return search_answer(found, await notes_about(options, collection))


@routes.post("/encode/picture", openapi_extra=_TAKES_PICTURE)
async def encode_picture(picture: Picture, collection: InCollection) -> Encoded:
    """Encode a picture, which is the body, as a query."""
    vectors = await answer(picture_vector(collection, picture))
    return encoded_answer(await answer(collection.encode(vectors)))


@routes.post("/predict/picture", openapi_extra=_TAKES_PICTURE)
async def predict_picture(
    picture: Picture,
    collection: InCollection,
    probabilities: Annotated[bool, Query(description="Return the probability of every class, too.")] = False,
) -> Prediction:
    """Predict the label of a picture, which is the body."""
    vectors = await answer(picture_vector(collection, picture))
    return await answer(collection.predict(vectors, probabilities=probabilities))


@routes.post("/items/picture", status_code=201, openapi_extra=_TAKES_PICTURE)
async def add_picture(
    picture: Picture,
    collection: InCollection,
    key: Key,
    id: Annotated[Id | None, Query(description="The id of the new item; the next free one if there is none.")] = None,
    label: Annotated[str | None, Query(max_length=10_000, description="The label of the item.")] = None,
    metadata: Annotated[str | None, Query(max_length=10_000, description="Metadata, as a JSON object.")] = None,
    reference: Annotated[str | None, Query(max_length=10_000, description="Where the picture is.")] = None,
) -> Written:
    """Store a picture, which is the body, as a new item, together with its preview."""
    collection.check_writable()
    known = [None] if label is None else await in_thread(_labels, collection, [label])
    described = _read_object("metadata", metadata) or {}
    vectors, small = await answer(picture_and_preview(collection, picture))
    items = NewItems(vectors, None if id is None else [id], known, [described], [reference], [small])
    return await answer(await in_thread(collection.add, items, key))


@routes.get(
    "/items/{item}/preview",
    response_class=Response,
    responses={200: {"description": "A small picture", "content": {name: _FILE[name] for name in PREVIEW_TYPES}}},
)
async def get_preview(item: ItemId, collection: InCollection) -> Response:
    """Return the small picture of an item."""
    return preview_answer(await in_thread(preview, collection, item))


def preview_answer(found: Preview) -> Response:
    """Return a preview as an answer; nothing in it may run, whatever a browser takes it for."""
    headers = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, max-age=60"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _labels(collection: Searcher, texts: list[str]) -> list[Label]:
    with collection.opened() as opened:
        return [label_from_text(text, opened.label_kind) for text in texts]


def _read_object(name: str, text: str | None) -> Metadata | None:
    found = None if text is None else parse_json(text)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{name} is {str(text)[:80]!r}; it must be a JSON object, such as " + '{"price": {"<": 10}}.')
    return found
