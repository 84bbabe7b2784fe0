"""Routes about jobs: fits, imports and new models, in the background."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

from fastapi import Header, Request, Response
from fastapi import Path as PathParameter
from fastapi import Path as PathPart
from fastapi.responses import FileResponse

from ...client.answers import Job, Snapshot
from ...exceptions import BundleFormatError
from ...hashers.base import BaseHasher
from ...hashers.catalog import load
from ..fits import FitRequest as Fit
from ..fits import check_fit, fit_and_reencode, reencode
from ..searcher import Searcher
from .bulk_import import import_lines
from .dependencies import CollectionName, InCollection, TheService, in_thread, router
from .schemas import FitRequest, JobList, Restored, SnapshotList, SnapshotRequest

routes = router("jobs", "/collections/{name}")
JobId = Annotated[str, PathPart(description="The id of a job.", max_length=100)]
ImportKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="If an import is cut short, send the same lines with the same key: what is stored is skipped.",
    ),
]
_MODEL = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
_LINES = {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
snapshots_routes = router("snapshots", "/collections/{name}/snapshots")
SnapshotName = Annotated[str, PathParameter(description="The name of a snapshot.", max_length=100)]
_FILE = {"content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}}


@routes.post("/fit", status_code=202)
async def fit(body: FitRequest, collection: InCollection, service: TheService) -> Job:
    """Fit a hasher on the kept vectors and labels, then encode all items with it. Only the fit can be canceled."""
    request = Fit(body.method, body.n_bits, body.seed, body.settings)
    await in_thread(check_fit, collection, request)
    collection.writer.check_writable()
    return service.jobs.start("fit", collection.name, lambda job: fit_and_reencode(job, collection, request))


@routes.post("/import", status_code=202, openapi_extra={"requestBody": {"required": True, **_LINES}})
async def import_items(request: Request, collection: InCollection, service: TheService, key: ImportKey = None) -> Job:
    """Add items from JSON lines, one object per line: a vector, and id, label, metadata and reference if known."""
    collection.writer.check_writable()
    file = await _received(request, collection)
    chosen = key or uuid.uuid4().hex

    def work(job: Any) -> dict[str, Any]:
        with file:
            return import_lines(job, collection, file, chosen)

    return service.jobs.start("import", collection.name, work, key=chosen)


@routes.get("/model", response_class=Response, responses={200: {"description": "A model file", **_MODEL}})
async def download_model(collection: InCollection) -> Response:
    """Return the hasher of a collection as a model file."""
    return Response(await in_thread(_saved, collection), media_type="application/octet-stream")


@routes.put("/model", status_code=202, openapi_extra={"requestBody": {"required": True, **_MODEL}})
async def replace_model(request: Request, collection: InCollection, service: TheService) -> Job:
    """Take a model file, and encode the kept vectors of all items with its hasher."""
    collection.writer.check_writable()
    with await _received(request, collection) as file:
        hasher = await in_thread(_loaded, file.name)
    await in_thread(collection.check_hasher, hasher)
    return service.jobs.start("re-encode", collection.name, lambda job: reencode(job, collection, hasher))


@routes.get("/jobs")
async def list_jobs(collection: InCollection, service: TheService) -> JobList:
    """List the jobs of a collection, the newest last."""
    return JobList(service.jobs.list(collection.name))


@routes.get("/jobs/{job}")
async def get_job(job: JobId, name: CollectionName, service: TheService) -> Job:
    """Say how far along a job is."""
    return service.jobs.get(name, job)


@routes.post("/jobs/{job}/cancel")
async def cancel_job(job: JobId, name: CollectionName, service: TheService) -> Job:
    """Ask a job to stop; batches that are already stored stay."""
    return service.jobs.cancel(name, job)


async def _received(request: Request, collection: Searcher) -> BinaryIO:
    """Write a body to a file on the disk of the collection, which vanishes when it is closed."""
    prefix, place = f".{collection.folder.name}.job-", collection.folder.parent
    file = cast(BinaryIO, await in_thread(tempfile.NamedTemporaryFile, prefix=prefix, dir=place))
    try:
        async for chunk in request.stream():
            await in_thread(file.write, chunk)
        await in_thread(file.seek, 0)
    except BaseException:
        file.close()
        raise
    return file


def _loaded(path: str) -> BaseHasher:
    try:
        return load(path)
    except BundleFormatError as error:
        # Whoever sent the file knows nothing of the place where it was put.
        raise error.about("The body") from error


def _saved(collection: Searcher) -> bytes:
    with collection.opened() as opened, tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.star"
        opened.hasher.save(path)
        return path.read_bytes()


# Snapshots.


@snapshots_routes.get("")
async def list_snapshots(name: CollectionName, service: TheService) -> SnapshotList:
    """List the snapshots of a collection, the newest last."""
    return SnapshotList(await in_thread(service.snapshots(name).list))


@snapshots_routes.post("", status_code=201)
async def make_snapshot(
    name: CollectionName, service: TheService, collection: InCollection, body: SnapshotRequest | None = None
) -> Snapshot:
    """Write a snapshot of the present state."""
    wanted = None if body is None else body.name
    return await in_thread(service.snapshots(name).make, collection, wanted)


@snapshots_routes.get(
    "/{snapshot}", response_class=FileResponse, responses={200: {"description": "A tar file", **_FILE}}
)
async def download_snapshot(name: CollectionName, snapshot: SnapshotName, service: TheService) -> FileResponse:
    """Return the file of a snapshot."""
    path = await in_thread(service.snapshots(name).path, snapshot)
    return FileResponse(path, media_type="application/x-tar", filename=path.name)


@snapshots_routes.put("/{snapshot}", status_code=201, openapi_extra={"requestBody": {"required": True, **_FILE}})
async def upload_snapshot(
    name: CollectionName, snapshot: SnapshotName, service: TheService, request: Request
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


@snapshots_routes.delete("/{snapshot}", status_code=204, response_class=Response)
async def delete_snapshot(name: CollectionName, snapshot: SnapshotName, service: TheService) -> None:
    """Delete a snapshot."""
    await in_thread(service.snapshots(name).delete, snapshot)


@snapshots_routes.post("/{snapshot}/restore")
async def restore_snapshot(
    name: CollectionName, snapshot: SnapshotName, service: TheService, collection: InCollection
) -> Restored:
    """Replace the collection by a snapshot, once that is known to be intact. Later changes are lost."""
    before = service.workspace(name).cancel_jobs
    return Restored(n_items=await in_thread(service.snapshots(name).restore, collection, snapshot, before=before))
