"""Labels, items, the model and the whole collection as files to download."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from ...errors import UnknownError
from ...exporting import EXPORTS
from ..parts import InCollection, TheService, in_thread

__all__ = ["routes"]

routes = APIRouter(include_in_schema=False)


@routes.get("/explore/{name}/export/{file}")
async def export(file: str, collection: InCollection, service: TheService) -> Response:
    """Write a file and send it."""
    if file not in EXPORTS:
        raise UnknownError(f"There is no file {file[:80]!r} to export; there are: {', '.join(EXPORTS)}.")
    folder = await in_thread(tempfile.TemporaryDirectory)
    path = Path(folder.name) / file
    try:
        await in_thread(EXPORTS[file].write, service.workshop(collection.name), path)
    except BaseException:
        await in_thread(folder.cleanup)
        raise
    shown = f"{collection.name}-{file}"
    return FileResponse(path, filename=shown, background=BackgroundTask(folder.cleanup))
