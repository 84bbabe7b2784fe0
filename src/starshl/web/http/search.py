"""Routes that ask questions: search, encode, predict."""

from __future__ import annotations

from .answers import Encoded, Predicted, SearchAnswer
from .parts import InCollection, answer, router
from .schemas import PredictRequest, SearchRequest, VectorsRequest

__all__ = ["routes"]

routes = router("search", "/collections/{name}")


@routes.post("/search")
async def search(body: SearchRequest, collection: InCollection) -> SearchAnswer:
    """Find the nearest items of vectors or of stored items."""
    return SearchAnswer.of(await answer(collection.search(body.vectors, body.items, body.to_options())))


@routes.post("/encode")
async def encode(body: VectorsRequest, collection: InCollection) -> Encoded:
    """Encode vectors as queries."""
    codes = await answer(collection.encode(body.vectors))
    return Encoded(n_bits=codes.n_bits, codes=[row.tobytes().hex() for row in codes.packed])


@routes.post("/predict")
async def predict(body: PredictRequest, collection: InCollection) -> Predicted:
    """Predict the labels of vectors, perhaps with probabilities."""
    found = await answer(collection.predict(body.vectors, probabilities=body.probabilities))
    return Predicted(labels=found.labels, classes=found.classes, probabilities=found.probabilities)
