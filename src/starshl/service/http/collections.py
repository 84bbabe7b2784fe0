"""Routes about collections and their items."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Annotated, cast

from fastapi import Path, Query

from ..._version import __version__
from ...client.answers import CollectionInfo, ItemPage, Written
from ...collection.answers import ClassChange, Item
from ...collection.embedding import note_of_stored
from ...collection.guesses import Order
from ...collection.options import ALL_ITEMS, Filters
from ...data.features.embedder import Embedder
from ..inputs import row_items, text_items
from ..searcher import Searcher
from ..writes import NewItems, WriteKey
from .dependencies import SearcherDep, ServiceDep, WriteKeyDep, in_thread, result_of, router
from .schemas import (
    AddRequest,
    ClassCount,
    Classes,
    Collections,
    Count,
    FieldsRequest,
    FilterRequest,
    Id,
    ItemsRequest,
    LabelsRequest,
    ListRequest,
    MergeRequest,
    RemoveClassRequest,
    RemoveRequest,
    RenameRequest,
    UndoRequest,
    UpdateRequest,
)

routes = router("collections", "/collections")
items_routes = router("items", "/collections/{name}")
ItemId = Annotated[Id, Path(description="The id of an item.")]
WithVectors = Annotated[bool, Query(description="Return the kept vectors, too.")]


@routes.get("")
async def list_collections(service: ServiceDep) -> Collections:
    """List all collections."""
    found = await in_thread(lambda: [searcher.info() for searcher in service.searchers.values()])
    return Collections(version=__version__, collections=found)


@routes.get("/{name}")
async def describe_collection(searcher: SearcherDep) -> CollectionInfo:
    """Say what a collection is and can do."""
    return await in_thread(searcher.info)


@routes.put("/{name}/fields")
async def declare_fields(body: FieldsRequest, searcher: SearcherDep) -> CollectionInfo:
    """Declare metadata fields, so that filters on them are fast; every item must fit, or nothing changes."""
    await result_of(searcher.writer.declare_fields(body.fields))
    return await in_thread(searcher.info)


@routes.get("/{name}/classes")
async def list_classes(searcher: SearcherDep) -> Classes:
    """List the classes, the most frequent first, and what was renamed, merged or removed."""
    return await in_thread(_classes, searcher)


@routes.post("/{name}/classes/rename")
async def rename_class(body: RenameRequest, searcher: SearcherDep, key: WriteKeyDep) -> ClassChange:
    """Give a class another name; no code changes."""
    change = searcher.writer.change_classes(lambda collection: collection.rename_class(body.label, body.name), key)
    return await result_of(change)


@routes.post("/{name}/classes/merge")
async def merge_classes(body: MergeRequest, searcher: SearcherDep, key: WriteKeyDep) -> ClassChange:
    """Let a class count as another one; no code changes."""
    change = searcher.writer.change_classes(lambda collection: collection.merge_classes(body.label, body.into), key)
    return await result_of(change)


@routes.post("/{name}/classes/remove")
async def remove_class(body: RemoveClassRequest, searcher: SearcherDep, key: WriteKeyDep) -> ClassChange:
    """Hide a class: its items have no label until this is undone."""
    return await result_of(searcher.writer.change_classes(lambda collection: collection.remove_class(body.label), key))


@routes.post("/{name}/classes/undo")
async def undo_class_change(body: UndoRequest, searcher: SearcherDep, key: WriteKeyDep) -> ClassChange:
    """Undo a rename, merger or removal of a class."""
    return await result_of(searcher.writer.undo_class_change(body.number, key))


@items_routes.post("/items", status_code=201)
async def add_items(body: AddRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Store new items, all of them or none."""
    return await _store(searcher.add, body, searcher, key, ids_required=False)


@items_routes.put("/items")
async def put_items(body: AddRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Store items under given ids; nothing of an item that is replaced stays."""
    return await _store(searcher.upsert, body, searcher, key, ids_required=True)


@items_routes.patch("/items")
async def update_items(body: UpdateRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Replace the metadata of items; labels, codes and vectors stay."""
    ids, metadata = [item.id for item in body.items], [item.metadata for item in body.items]
    return await result_of(searcher.writer.update(ids, metadata, key))


@items_routes.get("/items")
async def list_items(
    searcher: SearcherDep,
    after: Annotated[Id | None, Query(description="Begin behind this id.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ItemPage:
    """List items by id."""
    return await in_thread(_page, searcher, after, limit)


@items_routes.post("/items/list")
async def list_matching(body: ListRequest, searcher: SearcherDep) -> ItemPage:
    """List the items that pass filters, by id."""
    return await in_thread(_page, searcher, body.after, body.limit, body.to_filters(), body.order)


@items_routes.post("/items/count")
async def count_items(body: FilterRequest, searcher: SearcherDep) -> Count:
    """Count the items that pass filters."""
    filters = body.to_filters()
    return Count(await in_thread(searcher.count, filters), await in_thread(searcher.notes, filters))


@items_routes.post("/items/get")
async def get_items(body: ItemsRequest, searcher: SearcherDep, vectors: WithVectors = False) -> ItemPage:
    """Return several items by id."""
    return ItemPage(await in_thread(searcher.get, body.ids, vectors=vectors))


@items_routes.post("/items/remove")
async def remove_items(body: RemoveRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Remove items by id, all of them or none, or those that pass a filter."""
    if body.ids is None:
        return await result_of(searcher.writer.remove_matching(body.to_filters(), key))
    return await result_of(searcher.writer.remove(body.ids, key))


@items_routes.get("/items/{item}")
async def get_item(item: ItemId, searcher: SearcherDep, vectors: WithVectors = False) -> Item:
    """Return an item."""
    return (await in_thread(searcher.get, [item], vectors=vectors))[0]


@items_routes.delete("/items/{item}")
async def remove_item(item: ItemId, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Remove an item."""
    return await result_of(searcher.writer.remove([item], key))


@items_routes.put("/labels")
async def set_labels(body: LabelsRequest, searcher: SearcherDep, key: WriteKeyDep) -> Written:
    """Set or remove labels of items; their codes follow."""
    ids, labels = [item.id for item in body.items], [item.label for item in body.items]
    return await result_of(searcher.writer.set_labels(ids, labels, key))


async def _store(
    put: Callable[[NewItems, WriteKey | None], Future[Written]],
    body: AddRequest,
    searcher: Searcher,
    key: WriteKey | None,
    *,
    ids_required: bool,
) -> Written:
    searcher.writer.check_writable()
    items = body.to_items(ids_required=ids_required)
    if body.rows:
        items = await result_of(row_items(searcher, body.rows, items))
    elif body.texts:
        items = await result_of(text_items(searcher, body.texts, items))
    written = await result_of(await in_thread(put, items, key))
    note = await in_thread(_note_of_texts, searcher, body.texts) if body.texts else ""
    return replace(written, notes=[note]) if note else written


def _note_of_texts(searcher: Searcher, texts: list[str]) -> str:
    with searcher.opened() as collection:
        return note_of_stored(cast(Embedder, collection.embedder), texts)


def _classes(searcher: Searcher) -> Classes:
    with searcher.opened() as collection:
        counts, changes = collection.label_counts(), collection.class_changes()
        counts |= {label: 0 for label in collection.classes or () if label not in counts}
    return Classes(classes=[ClassCount(label=label, items=n) for label, n in counts.items()], changes=changes)


def _page(
    searcher: Searcher, after: int | None, limit: int, filters: Filters = ALL_ITEMS, order: Order = "id"
) -> ItemPage:
    found, more = searcher.list_items(after, limit, filters, order)
    return ItemPage(found, more, searcher.notes(filters))
