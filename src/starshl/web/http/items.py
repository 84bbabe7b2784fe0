"""Routes about items."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from ..searcher import Searcher
from .answers import ItemAnswer, Items, WriteAnswer
from .parts import InCollection, Key, answer, in_thread, router
from .schemas import AddRequest, ItemsRequest, LabelsRequest, UpdateRequest
from .types import Id

__all__ = ["routes"]

routes = router("items", "/collections/{name}")

ItemId = Annotated[Id, Path(description="The id of an item.")]
WithVectors = Annotated[bool, Query(description="Return the kept vectors, too.")]


@routes.post("/items", status_code=201)
async def add_items(body: AddRequest, collection: InCollection, key: Key) -> WriteAnswer:
    """Store new items, all of them or none."""
    items = body.to_items(ids_required=False)
    return WriteAnswer.of(await answer(await in_thread(collection.add, items, key)))


@routes.put("/items")
async def put_items(body: AddRequest, collection: InCollection, key: Key) -> WriteAnswer:
    """Store items under given ids; nothing of an item that is replaced stays."""
    items = body.to_items(ids_required=True)
    return WriteAnswer.of(await answer(await in_thread(collection.upsert, items, key)))


@routes.patch("/items")
async def update_items(body: UpdateRequest, collection: InCollection, key: Key) -> WriteAnswer:
    """Replace the metadata of items; labels, codes and vectors stay."""
    ids, metadata = [item.id for item in body.items], [item.metadata for item in body.items]
    return WriteAnswer.of(await answer(collection.update(ids, metadata, key)))


@routes.get("/items")
async def list_items(
    collection: InCollection,
    after: Annotated[Id | None, Query(description="Begin behind this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Items:
    """List items by id."""
    found = await in_thread(collection.list_items, after, limit + 1)
    more = found[limit - 1].id if len(found) > limit else None
    return Items.model_construct(items=[ItemAnswer.of(item) for item in found[:limit]], next=more)


@routes.post("/items/get")
async def get_items(body: ItemsRequest, collection: InCollection, vectors: WithVectors = False) -> Items:
    """Return several items by id."""
    return Items.model_construct(items=await in_thread(_answers, collection, body.ids, vectors), next=None)


@routes.post("/items/remove")
async def remove_items(body: ItemsRequest, collection: InCollection, key: Key) -> WriteAnswer:
    """Remove items, all of them or none."""
    return WriteAnswer.of(await answer(collection.remove(body.ids, key)))


@routes.get("/items/{item}")
async def get_item(item: ItemId, collection: InCollection, vectors: WithVectors = False) -> ItemAnswer:
    """Return an item."""
    found: list[ItemAnswer] = await in_thread(_answers, collection, [item], vectors)
    return found[0]


@routes.delete("/items/{item}")
async def remove_item(item: ItemId, collection: InCollection, key: Key) -> WriteAnswer:
    """Remove an item."""
    return WriteAnswer.of(await answer(collection.remove([item], key)))


@routes.put("/labels")
async def set_labels(body: LabelsRequest, collection: InCollection, key: Key) -> WriteAnswer:
    """Set or take away labels of items; their codes follow."""
    ids, labels = [item.id for item in body.items], [item.label for item in body.items]
    return WriteAnswer.of(await answer(collection.set_labels(ids, labels, key)))


def _answers(collection: Searcher, ids: list[int], vectors: bool) -> list[ItemAnswer]:
    kept: list[Any] = collection.vectors(ids).tolist() if vectors else [None] * len(ids)
    return [ItemAnswer.of(item, vector) for item, vector in zip(collection.get(ids), kept, strict=True)]
