"""Routes about collections."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from ..._version import __version__
from ...client.answers import CollectionInfo, ItemPage, Written
from ...collection.answers import Item
from ...collection.options import ALL_ITEMS, Filters
from ..inputs import row_items, text_items
from ..searcher import Searcher
from ..writes import NewItems
from .dependencies import InCollection, Key, TheService, answer, in_thread, router
from .schemas import (
    AddRequest,
    Collections,
    Count,
    FieldsRequest,
    FilterRequest,
    Id,
    ItemsRequest,
    LabelsRequest,
    ListRequest,
    RemoveRequest,
    UpdateRequest,
)

routes = router("collections", "/collections")
items_routes = router("items", "/collections/{name}")
ItemId = Annotated[Id, Path(description="The id of an item.")]
WithVectors = Annotated[bool, Query(description="Return the kept vectors, too.")]


@routes.get("")
async def list_collections(service: TheService) -> Collections:
    """List all collections."""
    found = await in_thread(lambda: [searcher.info() for searcher in service.searchers.values()])
    return Collections(version=__version__, collections=found)


@routes.get("/{name}")
async def describe_collection(collection: InCollection) -> CollectionInfo:
    """Say what a collection is and can do."""
    return await in_thread(collection.info)


@routes.put("/{name}/fields")
async def declare_fields(body: FieldsRequest, collection: InCollection) -> CollectionInfo:
    """Declare metadata fields, so that filters on them are fast; every item must fit, or nothing changes."""
    await answer(collection.writer.declare_fields(body.fields))
    return await in_thread(collection.info)


# Items.


@items_routes.post("/items", status_code=201)
async def add_items(body: AddRequest, collection: InCollection, key: Key) -> Written:
    """Store new items, all of them or none."""
    items = await _new_items(body, collection, ids_required=False)
    return await answer(await in_thread(collection.add, items, key))


@items_routes.put("/items")
async def put_items(body: AddRequest, collection: InCollection, key: Key) -> Written:
    """Store items under given ids; nothing of an item that is replaced stays."""
    items = await _new_items(body, collection, ids_required=True)
    return await answer(await in_thread(collection.upsert, items, key))


@items_routes.patch("/items")
async def update_items(body: UpdateRequest, collection: InCollection, key: Key) -> Written:
    """Replace the metadata of items; labels, codes and vectors stay."""
    ids, metadata = [item.id for item in body.items], [item.metadata for item in body.items]
    return await answer(collection.writer.update(ids, metadata, key))


@items_routes.get("/items")
async def list_items(
    collection: InCollection,
    after: Annotated[Id | None, Query(description="Begin behind this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ItemPage:
    """List items by id."""
    return await in_thread(_page, collection, after, limit)


@items_routes.post("/items/list")
async def list_matching(body: ListRequest, collection: InCollection) -> ItemPage:
    """List the items that pass filters, by id."""
    return await in_thread(_page, collection, body.after, body.limit, body.to_filters())


@items_routes.post("/items/count")
async def count_items(body: FilterRequest, collection: InCollection) -> Count:
    """Count the items that pass filters."""
    filters = body.to_filters()
    return Count(await in_thread(collection.count, filters), await in_thread(collection.notes, filters))


@items_routes.post("/items/get")
async def get_items(body: ItemsRequest, collection: InCollection, vectors: WithVectors = False) -> ItemPage:
    """Return several items by id."""
    return ItemPage(await in_thread(collection.get, body.ids, vectors=vectors))


@items_routes.post("/items/remove")
async def remove_items(body: RemoveRequest, collection: InCollection, key: Key) -> Written:
    """Remove items by id, all of them or none, or those that pass a filter."""
    if body.ids is None:
        return await answer(collection.writer.remove_matching(body.to_filters(), key))
    return await answer(collection.writer.remove(body.ids, key))


@items_routes.get("/items/{item}")
async def get_item(item: ItemId, collection: InCollection, vectors: WithVectors = False) -> Item:
    """Return an item."""
    return (await in_thread(collection.get, [item], vectors=vectors))[0]


@items_routes.delete("/items/{item}")
async def remove_item(item: ItemId, collection: InCollection, key: Key) -> Written:
    """Remove an item."""
    return await answer(collection.writer.remove([item], key))


@items_routes.put("/labels")
async def set_labels(body: LabelsRequest, collection: InCollection, key: Key) -> Written:
    """Set or remove labels of items; their codes follow."""
    ids, labels = [item.id for item in body.items], [item.label for item in body.items]
    return await answer(collection.writer.set_labels(ids, labels, key))


async def _new_items(body: AddRequest, collection: Searcher, *, ids_required: bool) -> NewItems:
    collection.writer.check_writable()
    items = body.to_items(ids_required=ids_required)
    if body.texts:
        return await answer(text_items(collection, body.texts, items))
    if body.rows:
        return await answer(row_items(collection, body.rows, items))
    return items


def _page(collection: Searcher, after: int | None, limit: int, filters: Filters = ALL_ITEMS) -> ItemPage:
    found, more = collection.list_items(after, limit, filters)
    return ItemPage(found, more, collection.notes(filters))
