"""Routes about jobs, which run in the background: fits, imports, new models, and how far along they are."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

from fastapi import Header, Request, Response
from fastapi import Path as PathParameter

from ...client.answers import Job
from ...exceptions import BundleFormatError
from ...hashers.base import BaseHasher
from ...hashers.catalog import load
from ..fits import FitSettings, check_fit, fit_and_reencode, reencode
from ..searcher import Searcher
from .bulk_import import import_lines
from .dependencies import CollectionName, InCollection, TheService, in_thread, router
from .schemas import FitRequest, JobList

routes = router("jobs", "/collections/{name}")
JobId = Annotated[str, PathParameter(description="The id of a job.", max_length=100)]
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


@routes.post("/fit", status_code=202)
async def fit(body: FitRequest, collection: InCollection, service: TheService) -> Job:
    """Fit a hasher on the kept vectors and labels, then encode all items with it. Only the fit can be canceled."""
    settings = FitSettings(body.method, body.n_bits, body.seed, body.settings)
    await in_thread(check_fit, collection, settings)
    collection.writer.check_writable()
    return service.jobs.start("fit", collection.name, lambda job: fit_and_reencode(job, collection, settings))


@routes.post("/import", status_code=202, openapi_extra={"requestBody": {"required": True, **_LINES}})
async def import_items(request: Request, collection: InCollection, service: TheService, key: ImportKey = None) -> Job:
    """Add items from JSON lines, one object per line: a vector, and id, label, metadata and reference if known."""
    collection.writer.check_writable()
    file = await _receive(request, collection)
    import_key = key or uuid.uuid4().hex

    def work(job: Any) -> dict[str, Any]:
        with file:
            return import_lines(job, collection, file, import_key)

    return service.jobs.start("import", collection.name, work, key=import_key)


@routes.get("/model", response_class=Response, responses={200: {"description": "A model file", **_MODEL}})
async def download_model(collection: InCollection) -> Response:
    """Return the hasher of a collection as a model file."""
    return Response(await in_thread(_save_model, collection), media_type="application/octet-stream")


@routes.put("/model", status_code=202, openapi_extra={"requestBody": {"required": True, **_MODEL}})
async def replace_model(request: Request, collection: InCollection, service: TheService) -> Job:
    """Take a model file, and encode the kept vectors of all items with its hasher."""
    collection.writer.check_writable()
    with await _receive(request, collection) as file:
        hasher = await in_thread(_load, file.name)
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


async def _receive(request: Request, collection: Searcher) -> BinaryIO:
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


def _load(path: str) -> BaseHasher:
    try:
        return load(path)
    except BundleFormatError as error:
        # Whoever sent the file knows nothing of the place where it was put.
        raise error.about("The body") from error


def _save_model(collection: Searcher) -> bytes:
    with collection.opened() as opened, tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.star"
        opened.hasher.save(path)
        return path.read_bytes()
