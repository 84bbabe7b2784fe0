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
from ..fits import FitSettings, check_fit, check_model, fit_and_reencode, reencode
from ..searcher import Searcher
from .bulk_import import import_lines
from .dependencies import CollectionName, SearcherDep, ServiceDep, in_thread, router
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
async def fit(body: FitRequest, searcher: SearcherDep, service: ServiceDep) -> Job:
    """Fit a hasher on the kept vectors and labels, then encode all items with it. Only the fit can be canceled."""
    settings = FitSettings(body.method, body.n_bits, body.seed, body.settings)
    await in_thread(check_fit, searcher, settings)
    searcher.writer.check_writable()
    return service.jobs.start("fit", searcher.name, lambda job: fit_and_reencode(job, searcher, settings))


@routes.post("/import", status_code=202, openapi_extra={"requestBody": {"required": True, **_LINES}})
async def import_items(request: Request, searcher: SearcherDep, service: ServiceDep, key: ImportKey = None) -> Job:
    """Add items from JSON lines, one object per line: a vector, and id, label, metadata and reference if known."""
    searcher.writer.check_writable()
    file = await _receive(request, searcher)
    import_key = key or uuid.uuid4().hex

    def work(job: Any) -> dict[str, Any]:
        with file:
            return import_lines(job, searcher, file, import_key)

    return service.jobs.start("import", searcher.name, work, key=import_key)


@routes.get("/model", response_class=Response, responses={200: {"description": "A model file", **_MODEL}})
async def download_model(searcher: SearcherDep) -> Response:
    """Return the hasher of a collection as a model file."""
    return Response(await in_thread(_save_model, searcher), media_type="application/octet-stream")


@routes.put("/model", status_code=202, openapi_extra={"requestBody": {"required": True, **_MODEL}})
async def replace_model(request: Request, searcher: SearcherDep, service: ServiceDep) -> Job:
    """Take a model file, and encode the kept vectors of all items with its hasher."""
    searcher.writer.check_writable()
    with await _receive(request, searcher) as file:
        hasher = await in_thread(_load, file.name)
    await in_thread(check_model, searcher, hasher)
    return service.jobs.start("re-encode", searcher.name, lambda job: reencode(job, searcher, hasher))


@routes.get("/jobs")
async def list_jobs(searcher: SearcherDep, service: ServiceDep) -> JobList:
    """List the jobs of a collection, the newest last."""
    return JobList(service.jobs.list(searcher.name))


@routes.get("/jobs/{job}")
async def get_job(job: JobId, name: CollectionName, service: ServiceDep) -> Job:
    """Say how far along a job is."""
    return service.jobs.get(name, job)


@routes.post("/jobs/{job}/cancel")
async def cancel_job(job: JobId, name: CollectionName, service: ServiceDep) -> Job:
    """Ask a job to stop; batches that are already stored stay."""
    return service.jobs.cancel(name, job)


async def _receive(request: Request, searcher: Searcher) -> BinaryIO:
    """Write a body to a file on the disk of the collection, which vanishes when it is closed."""
    prefix, place = f".{searcher.folder.name}.job-", searcher.folder.parent
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


def _save_model(searcher: Searcher) -> bytes:
    with searcher.opened() as collection, tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.star"
        collection.hasher.save(path)
        return path.read_bytes()
