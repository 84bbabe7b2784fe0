"""Routes that ask questions: search, recommend, encode, predict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from ...answers import Label, Prediction
from ...collection.raw import unknown_texts, unknown_texts_note
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
    return search_answer(found, await notes_about(options, collection))


@routes.post("/encode")
async def encode(body: VectorsRequest, collection: InCollection) -> Encoded:
    """Encode vectors or texts as queries."""
    vectors = await _vectors(body, collection)
    notes = _notes_about_texts(body, vectors, "the code there says nothing about it")
    return encoded_answer(await answer(collection.encode(vectors)), notes)


@routes.post("/predict")
async def predict(body: PredictRequest, collection: InCollection) -> Prediction:
    """Predict the labels of vectors or texts, perhaps with probabilities; null for a text without a known word."""
    vectors = await _vectors(body, collection)
    predicted = await answer(collection.predict(vectors, probabilities=body.probabilities))
    if body.texts is None:
        return predicted
    outcome = "the label there is null" + (", and the probabilities mean nothing" if body.probabilities else "")
    labels: list[Label | None] = list(predicted.labels)
    for place in unknown_texts(np.asarray(vectors)):
        labels[place] = None
    return replace(predicted, labels=labels, notes=_notes_about_texts(body, vectors, outcome))


async def notes_about(options: SearchOptions, collection: Searcher) -> list[str]:
    """Return the notes about filters, without a thread if there are none."""
    if options.where is None and options.labels is None:
        return []
    return await in_thread(collection.notes, options)


async def _vectors(body: VectorsRequest | SearchRequest, collection: Searcher) -> Rows:
    if body.rows is not None:
        return await answer(row_vectors(collection, body.rows))
    if body.texts is not None:
        return await answer(text_vectors(collection, body.texts))
    assert body.vectors is not None
    return body.vectors


def _notes_about_texts(
    body: VectorsRequest | SearchRequest, vectors: Rows | None, outcome: str = "what is found there means nothing"
) -> list[str]:
    """Return a note about texts without a known word, if there are any, that says what becomes of them."""
    note = None if body.texts is None else unknown_texts_note(body.texts, np.asarray(vectors), outcome)
    return [] if note is None else [note]


async def _searched(body: SearchRequest, collection: Searcher) -> SearchAnswer:
    options = body.to_options()
    vectors = None if body.items is not None else await _vectors(body, collection)
    found = await answer(collection.search(vectors, body.items, options))
    return search_answer(found, _notes_about_texts(body, vectors) + await notes_about(options, collection))
