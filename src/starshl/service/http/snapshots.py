"""Routes about snapshots: make, send, fetch, restore and delete them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from ...client.answers import Snapshot
from .dependencies import CollectionName, SearcherDep, ServiceDep, in_thread, router
from .problems import Download
from .schemas import Restored, SnapshotList, SnapshotRequest

routes = router("snapshots", "/collections/{name}/snapshots")
SnapshotName = Annotated[str, Path(description="The name of a snapshot.", max_length=100)]
_FILE = {"content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}}


@routes.get("")
async def list_snapshots(name: CollectionName, service: ServiceDep) -> SnapshotList:
    """List the snapshots of a collection, the newest last."""
    return SnapshotList(await in_thread(service.snapshots(name).list))


@routes.post("", status_code=201)
async def make_snapshot(
    name: CollectionName, service: ServiceDep, searcher: SearcherDep, body: SnapshotRequest | None = None
) -> Snapshot:
    """Write a snapshot of the present state."""
    wanted = None if body is None else body.name
    return await in_thread(service.snapshots(name).make, searcher, wanted)


@routes.get("/{snapshot}", response_class=Download, responses={200: {"description": "A tar file", **_FILE}})
async def download_snapshot(name: CollectionName, snapshot: SnapshotName, service: ServiceDep) -> Download:
    """Return the file of a snapshot."""
    path = await in_thread(service.snapshots(name).path, snapshot)
    return Download(path, media_type="application/x-tar", filename=path.name)


@routes.put("/{snapshot}", status_code=201, openapi_extra={"requestBody": {"required": True, **_FILE}})
async def upload_snapshot(
    name: CollectionName, snapshot: SnapshotName, service: ServiceDep, request: Request
) -> Snapshot:
    """Take a snapshot that was made elsewhere; it is kept if it is complete and intact."""
    snapshots = service.snapshots(name)
    receiving = snapshots.receive(snapshot)
    file = await in_thread(receiving.__enter__)
    try:
        async for chunk in request.stream():
            await in_thread(file.write, chunk)
    except BaseException as error:
        await in_thread(receiving.__exit__, type(error), error, error.__traceback__)
        raise
    await in_thread(receiving.__exit__, None, None, None)
    return next(each for each in await in_thread(snapshots.list) if each.name == snapshot)


@routes.delete("/{snapshot}", status_code=204, response_class=Response)
async def delete_snapshot(name: CollectionName, snapshot: SnapshotName, service: ServiceDep) -> None:
    """Delete a snapshot."""
    await in_thread(service.snapshots(name).delete, snapshot)


@routes.post("/{snapshot}/restore")
async def restore_snapshot(
    name: CollectionName, snapshot: SnapshotName, service: ServiceDep, searcher: SearcherDep
) -> Restored:
    """Replace the collection by a snapshot, once that is known to be intact. Later changes are lost."""
    before = service.workspace(name).cancel_jobs
    return Restored(n_items=await in_thread(service.snapshots(name).restore, searcher, snapshot, before=before))
