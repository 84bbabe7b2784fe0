"""Routes that ask questions: search, recommend, encode, predict."""

from __future__ import annotations

import asyncio

import numpy as np

from ...answers import Prediction
from ...collection.raw import unknown_texts_note
from ..raw import text_vectors
from ..requests import SearchOptions
from ..searcher import Rows, Searcher
from ..table_rows import row_vectors
from .answers import Encoded, SearchAnswer, SearchAnswers, encoded_answer, search_answer
from .parts import InCollection, answer, in_thread, router
from .schemas import PredictRequest, RecommendRequest, SearchesRequest, SearchRequest, VectorsRequest

__all__ = ["notes_about", "routes"]

routes = router("search", "/collections/{name}")


@routes.post("/search")
async def search(body: SearchRequest, collection: InCollection) -> SearchAnswer:
    """Find the nearest items of vectors, of texts or of stored items."""
    return await _searched(body, collection)


@routes.post("/search/batch")
async def search_together(body: SearchesRequest, collection: InCollection) -> SearchAnswers:
    """Do several searches, each with its own options; if one of them cannot be done, none is answered."""
    return SearchAnswers(list(await asyncio.gather(*(_searched(each, collection) for each in body.searches))))


@routes.post("/recommend")
async def recommend(body: RecommendRequest, collection: InCollection) -> SearchAnswer:
    """Find what is like some stored items and unlike others, by their kept vectors; these items are left out."""
    options = body.to_options()
    found = await answer(await in_thread(collection.recommend, body.like, body.unlike, options))
    return search_answer(found, await in_thread(collection.notes, options))


@routes.post("/encode")
async def encode(body: VectorsRequest, collection: InCollection) -> Encoded:
    """Encode vectors or texts as queries."""
    return encoded_answer(await answer(collection.encode(await _known_vectors(body, collection))))


@routes.post("/predict")
async def predict(body: PredictRequest, collection: InCollection) -> Prediction:
    """Predict the labels of vectors or texts, perhaps with probabilities."""
    return await answer(collection.predict(await _known_vectors(body, collection), probabilities=body.probabilities))


async def notes_about(options: SearchOptions, collection: Searcher) -> list[str]:
    """Return the notes about filters, without a thread if there are none."""
    if options.where is None and options.labels is None:
        return []
    notes: list[str] = await in_thread(collection.notes, options)
    return notes


async def _vectors(body: VectorsRequest | SearchRequest, collection: Searcher) -> Rows:
    if body.rows is not None:
        return await answer(row_vectors(collection, body.rows))
    if body.texts is not None:
        return await answer(text_vectors(collection, body.texts))
    assert body.vectors is not None
    return body.vectors


async def _known_vectors(body: VectorsRequest, collection: Searcher) -> Rows:
    """Return vectors; a text without a known word is refused, because nothing can be said about it."""
    vectors = await _vectors(body, collection)
    unknown = None if body.texts is None else unknown_texts_note(body.texts, np.asarray(vectors))
    if unknown is not None:
        raise ValueError(unknown)
    return vectors


async def _searched(body: SearchRequest, collection: Searcher) -> SearchAnswer:
    options = body.to_options()
    vectors = None if body.items is not None else await _vectors(body, collection)
    found = await answer(collection.search(vectors, body.items, options))
    unknown = None if body.texts is None else unknown_texts_note(body.texts, np.asarray(vectors))
    notes = await notes_about(options, collection)
    return search_answer(found, notes if unknown is None else [unknown, *notes])
