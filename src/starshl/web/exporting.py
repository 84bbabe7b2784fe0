"""What can be taken away from a lesson: labels, items for other viewers, the model, the whole collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .archive import write_archive
from .workshop import Workshop

__all__ = ["EXPORTS", "Export"]


def _model(workshop: Workshop, path: Path) -> None:
    with workshop.searcher.opened() as collection:
        collection.hasher.save(path)


def _collection(workshop: Workshop, path: Path) -> None:
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
    "model.star": Export("Model", _model),
    "collection.tar": Export("Whole collection, as a snapshot", _collection),
}
