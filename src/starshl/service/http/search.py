"""Routes that ask questions (search, recommend, encode, predict), and those about pictures, as questions and items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, cast

import numpy as np
from fastapi import Depends, HTTPException, Query, Request
from fastapi.responses import Response

from ..._common.labels import Label
from ..._common.strict_json import parse_json
from ...client.answers import Written
from ...collection.answers import Prediction, SearchResult
from ...collection.embedding import text_notes, unknown_texts
from ...collection.labels import typed_label
from ...collection.options import SearchOptions
from ...collection.previews import PREVIEW_TYPES
from ...data.features.embedder import Embedder
from ...data.features.picture_files import MEDIA_TYPES
from ..errors import TooLargeError
from ..inputs import picture_and_preview, picture_vector, row_vectors, text_vectors
from ..searcher import Searcher, VectorsLike
from ..writes import NewItems
from .collections import ItemId
from .dependencies import SearcherDep, WriteKeyDep, in_thread, result_of, router
from .schemas import (
    Encoded,
    HitCount,
    Id,
    Metadata,
    PredictRequest,
    Probability,
    Radius,
    RecommendRequest,
    SearchAnswer,
    SearchAnswers,
    SearchesRequest,
    SearchRequest,
    SearchSettings,
    VectorsRequest,
    encoded_answer,
)

routes = router("search", "/collections/{name}")
picture_routes = router("pictures", "/collections/{name}")
MOST_METADATA = 64_000_000  # bytes in an answer
_SEARCHES_AT_ONCE = 8  # of one request, so that others come between them
_FILE: dict[str, Any] = {name: {"schema": {"type": "string", "format": "binary"}} for name in MEDIA_TYPES}
_TAKES_PICTURE: dict[str, Any] = {"requestBody": {"required": True, "content": _FILE}}


@routes.post("/search")
async def search(body: SearchRequest, searcher: SearcherDep) -> SearchAnswer:
    """Find the nearest items of vectors, of texts or of stored items."""
    return await _search(body, searcher)


@routes.post("/search/batch")
async def search_together(body: SearchesRequest, searcher: SearcherDep) -> SearchAnswers:
    """Do several searches, each with its own options; if one of them cannot be done, none is answered."""
    places = asyncio.Semaphore(_SEARCHES_AT_ONCE)

    async def answer(each: SearchRequest) -> SearchAnswer:
        async with places:
            return await _search(each, searcher)

    try:
        # The first one that fails ends the others.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(each)) for each in body.searches]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    answers = [task.result() for task in tasks]
    _check_size([result for answer in answers for result in answer.results])
    return SearchAnswers(answers)


@routes.post("/recommend")
async def recommend(body: RecommendRequest, searcher: SearcherDep) -> SearchAnswer:
    """Find what is like some stored items and unlike others, by their kept vectors; these items are left out."""
    options = body.to_options()
    found = await result_of(await in_thread(searcher.recommend, body.like, body.unlike, options))
    return SearchAnswer(found, await _notes(options, searcher))


@routes.post("/encode")
async def encode(body: VectorsRequest, searcher: SearcherDep) -> Encoded:
    """Encode vectors or texts as queries."""
    vectors = await _vectors(body, searcher)
    notes = await _text_notes(body, searcher, vectors, "the code there says nothing about it")
    return encoded_answer(await result_of(searcher.encode(vectors)), notes)


@routes.post("/predict")
async def predict(body: PredictRequest, searcher: SearcherDep) -> Prediction:
    """Predict the labels of vectors or texts, perhaps with probabilities.

    The label is null for a text without a known word, and, with ``reject``, where `novelty` is at least 1 - ``reject``.
    """
    vectors = await _vectors(body, searcher)
    predicted = await result_of(searcher.predict(vectors, probabilities=body.probabilities, reject=body.reject))
    if body.texts is None:
        return predicted
    outcome = "the label there is null" + (", and the probabilities mean nothing" if body.probabilities else "")
    labels: list[Label | None] = list(predicted.labels)
    for position in unknown_texts(np.asarray(vectors)):
        labels[position] = None
    return replace(predicted, labels=labels, notes=await _text_notes(body, searcher, vectors, outcome))


async def _search(body: SearchRequest, searcher: Searcher) -> SearchAnswer:
    options = body.to_options()
    vectors = None if body.items is not None else await _vectors(body, searcher)
    found = await result_of(searcher.search(vectors, body.items, options))
    _check_size(found)
    return SearchAnswer(found, await _text_notes(body, searcher, vectors) + await _notes(options, searcher))


def _check_size(results: Sequence[SearchResult]) -> None:
    """Refuse an answer that few items with much metadata make large, because many queries find them."""
    sizes: dict[int, int] = {}
    total = 0
    for hit in (hit for result in results for hit in result.hits if hit.metadata):
        if hit.id not in sizes:
            sizes[hit.id] = len(json.dumps(hit.metadata))
        total += sizes[hit.id]
    if total > MOST_METADATA:
        raise TooLargeError(
            f"The metadata of all hits would take {total:,} bytes; an answer holds up to {MOST_METADATA:,}. Send fewer "
            "queries at once, or ask for fewer results."
        )


async def _notes(options: SearchOptions, searcher: Searcher) -> list[str]:
    """Return the notes about filters, without a thread if there are none."""
    return await in_thread(searcher.notes, options.filters) if options.filters else []


async def _vectors(body: VectorsRequest | SearchRequest, searcher: Searcher) -> VectorsLike:
    if body.rows is not None:
        return await result_of(row_vectors(searcher, body.rows))
    if body.texts is not None:
        return await result_of(text_vectors(searcher, body.texts))
    assert body.vectors is not None
    return body.vectors


async def _text_notes(
    body: VectorsRequest | SearchRequest,
    searcher: Searcher,
    vectors: VectorsLike | None,
    outcome: str = "what is found there means nothing",
) -> list[str]:
    """Return notes about texts without a known word, with what becomes of them, and about texts that are cut."""
    if body.texts is None:
        return []
    return await in_thread(_notes_of_texts, searcher, body.texts, np.asarray(vectors), outcome)


def _notes_of_texts(searcher: Searcher, texts: list[str], vectors: np.ndarray, outcome: str) -> list[str]:
    with searcher.opened() as collection:
        return text_notes(cast(Embedder, collection.embedder), texts, vectors, outcome)


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


@picture_routes.post("/search/picture", openapi_extra=_TAKES_PICTURE)
async def search_by_picture(
    picture: Picture,
    searcher: SearcherDep,
    k: Annotated[HitCount, Query(description="How many items to find.")] = 10,
    labels: Annotated[list[str] | None, Query(max_length=1000, description="Only items with these labels.")] = None,
    where: Annotated[str | None, Query(max_length=10_000, description="A filter on metadata, as JSON.")] = None,
    radius: Annotated[Radius | None, Query(description="Only items within this distance.")] = None,
    min_probability: Annotated[
        Probability | None, Query(description="Only items that are of the picture's class with this probability.")
    ] = None,
    rescore: Annotated[bool | None, Query(description="Compare kept vectors.")] = None,
    explain: Annotated[bool, Query(description="Say why items match.")] = False,
) -> SearchAnswer:
    """Find the nearest items of a picture, which is the body: a JPEG, PNG, WebP, GIF, BMP or TIFF file."""
    wanted = None if labels is None else await in_thread(_labels, searcher, labels)
    settings = SearchSettings(
        k=k,
        labels=wanted,
        where=_read_object("where", where),
        min_probability=min_probability,
        rescore=rescore,
        explain=explain,
    )
    options = replace(settings.to_options(), radius=radius)
    vectors = await result_of(picture_vector(searcher, picture))
    found = await result_of(searcher.search(vectors, options=options))
    return SearchAnswer(found, await _notes(options, searcher))


@picture_routes.post("/encode/picture", openapi_extra=_TAKES_PICTURE)
async def encode_picture(picture: Picture, searcher: SearcherDep) -> Encoded:
    """Encode a picture, which is the body, as a query."""
    vectors = await result_of(picture_vector(searcher, picture))
    return encoded_answer(await result_of(searcher.encode(vectors)))


@picture_routes.post("/predict/picture", openapi_extra=_TAKES_PICTURE)
async def predict_picture(
    picture: Picture,
    searcher: SearcherDep,
    probabilities: Annotated[bool, Query(description="Return the probability of every class, too.")] = False,
    reject: Annotated[
        Probability | None, Query(description="Say null if fewer of the training rows than this look as novel.")
    ] = None,
) -> Prediction:
    """Predict the label of a picture, which is the body."""
    vectors = await result_of(picture_vector(searcher, picture))
    return await result_of(searcher.predict(vectors, probabilities=probabilities, reject=reject))


@picture_routes.post("/items/picture", status_code=201, openapi_extra=_TAKES_PICTURE)
async def add_picture(
    picture: Picture,
    searcher: SearcherDep,
    key: WriteKeyDep,
    id: Annotated[Id | None, Query(description="The id of the new item; the next free one if there is none.")] = None,
    label: Annotated[str | None, Query(max_length=10_000, description="The label of the item.")] = None,
    metadata: Annotated[str | None, Query(max_length=10_000, description="Metadata, as a JSON object.")] = None,
    reference: Annotated[str | None, Query(max_length=10_000, description="Where the picture is.")] = None,
) -> Written:
    """Store a picture, which is the body, as a new item, together with its preview."""
    searcher.writer.check_writable()
    known = [None] if label is None else await in_thread(_labels, searcher, [label])
    described = _read_object("metadata", metadata) or {}
    vectors, small = await result_of(picture_and_preview(searcher, picture))
    items = NewItems(vectors, None if id is None else [id], known, [described], [reference], [small])
    return await result_of(await in_thread(searcher.add, items, key))


@picture_routes.get(
    "/items/{item}/preview",
    response_class=Response,
    responses={200: {"description": "A small picture", "content": {name: _FILE[name] for name in PREVIEW_TYPES}}},
)
async def get_preview(item: ItemId, searcher: SearcherDep) -> Response:
    """Return the small picture of an item."""
    return await preview_response(searcher, item)


async def preview_response(searcher: Searcher, item: int) -> Response:
    """Return the small picture of an item; nothing in it may run, whatever a browser takes it for."""
    found = await in_thread(searcher.preview, item)
    headers = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "private, max-age=60"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _labels(searcher: Searcher, texts: list[str]) -> list[Label]:
    with searcher.opened() as collection:
        return [typed_label(text, collection.label_kind) for text in texts]


def _read_object(name: str, text: str | None) -> Metadata | None:
    found = None if text is None else parse_json(text)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{name} is {str(text)[:80]!r}; it must be a JSON object, such as " + '{"price": {"<": 10}}.')
    return found
