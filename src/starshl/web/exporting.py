"""What can be taken away from a lesson: labels, items for other viewers, the model, the whole collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..teaching import Lesson, export_atlas, export_labels
from .archive import write_archive
from .errors import ConflictError
from .workshop import Workshop

__all__ = ["EXPORTS", "Export"]

_SECONDS_TO_FOLLOW = 60  # until the snapshot is taken with the codes as they are


def _lesson(workshop: Workshop) -> Lesson:
    lesson = workshop.lesson()
    if lesson is None:
        raise ConflictError("This file comes from a lesson, which is not prepared yet. Open the page Teach first.")
    return lesson


def _labels(workshop: Workshop, path: Path) -> None:
    export_labels(_lesson(workshop), path)


def _items(workshop: Workshop, path: Path) -> None:
    export_atlas(_lesson(workshop), path)


def _model(workshop: Workshop, path: Path) -> None:
    with workshop.searcher.opened() as collection:
        collection.hasher.save(path)


def _collection(workshop: Workshop, path: Path) -> None:
    lesson = workshop.lesson()
    if lesson is not None:
        # Before it is this one's turn to write: the codes that follow the labels wait for their turn, too.
        lesson.wait_for_codes(_SECONDS_TO_FOLLOW)

    def write() -> None:
        with workshop.searcher.opened() as collection, path.open("xb") as file:
            write_archive(file, collection.folder)

    workshop.searcher.undisturbed(write).result()


@dataclass(frozen=True, slots=True)
class Export:
    """A kind of file: what it holds, and the function that writes it."""

    title: str
    write: Callable[[Workshop, Path], None]


#: What can be exported, by the name of the file.
EXPORTS = {
    "labels.csv": Export("All labels", _labels),
    "items.parquet": Export("Items for Embedding Atlas and others", _items),
    "model.star": Export("Model", _model),
    "collection.tar": Export("Whole collection, as a snapshot", _collection),
}
