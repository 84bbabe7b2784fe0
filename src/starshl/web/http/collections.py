"""Routes about collections."""

from __future__ import annotations

from ... import __version__
from ...answers import CollectionInfo
from .answers import Collections
from .parts import InCollection, TheService, answer, in_thread, router
from .schemas import FieldsRequest

__all__ = ["routes"]

routes = router("collections", "/collections")


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
    await answer(collection.declare_fields(body.fields))
    return await in_thread(collection.info)
