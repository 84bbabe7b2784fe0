"""Labels, items, the model and the whole collection as files to download."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.background import BackgroundTask

from ...labeling.export import export_atlas, export_labels
from ...labeling.lesson import Lesson
from ..errors import ConflictError, UnknownError
from ..http.dependencies import SearcherDep, ServiceDep, in_thread
from ..http.problems import Download
from ..snapshots import write_archive
from ..workspace import Workspace

routes = APIRouter(include_in_schema=False)
_SECONDS_TO_REFIT = 60  # until the snapshot is taken with the codes as they are


def _lesson(workspace: Workspace) -> Lesson:
    lesson = workspace.lesson()
    if lesson is None:
        raise ConflictError("This file comes from a lesson, which is not prepared yet. Open the page Teach first.")
    return lesson


def _labels(workspace: Workspace, path: Path) -> None:
    with workspace.searcher.opened() as collection:
        export_labels(collection, path)


def _items(workspace: Workspace, path: Path) -> None:
    export_atlas(_lesson(workspace), path)


def _model(workspace: Workspace, path: Path) -> None:
    with workspace.searcher.opened() as collection:
        collection.hasher.save(path)


def _collection(workspace: Workspace, path: Path) -> None:
    lesson = workspace.lesson()
    if lesson is not None:
        # Before it is this one's turn to write: the codes that follow the labels wait for their turn, too.
        lesson.wait_for_codes(_SECONDS_TO_REFIT)

    def write() -> None:
        with workspace.searcher.opened() as collection, path.open("xb") as file:
            write_archive(file, collection.folder)

    workspace.searcher.writer.run_exclusively(write).result()


@dataclass(frozen=True, slots=True)
class Export:
    """A kind of file: what it holds, and the function that writes it."""

    title: str
    write: Callable[[Workspace, Path], None]


#: What can be exported, by the name of the file.
EXPORTS = {
    "labels.csv": Export("All labels", _labels),
    "items.parquet": Export("Items for Embedding Atlas and others", _items),
    "model.star": Export("Model", _model),
    "collection.tar": Export("Whole collection, as a snapshot", _collection),
}


@routes.get("/explore/{name}/export/{file}")
async def export(file: str, searcher: SearcherDep, service: ServiceDep) -> Response:
    """Write a file and send it."""
    if file not in EXPORTS:
        raise UnknownError(f"There is no file {file[:80]!r} to export; there are: {', '.join(EXPORTS)}.")
    folder = await in_thread(tempfile.TemporaryDirectory)
    path = Path(folder.name) / file
    try:
        await in_thread(EXPORTS[file].write, service.workspace(searcher.name), path)
    except BaseException:
        await in_thread(folder.cleanup)
        raise
    return Download(path, filename=f"{searcher.name}-{file}", background=BackgroundTask(folder.cleanup))
