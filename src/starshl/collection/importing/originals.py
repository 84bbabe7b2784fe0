"""Originals: the picture files that items were made from, found only below the folders that they came from."""

from __future__ import annotations

from pathlib import Path

from ...data.features.picture_files import is_picture_file, preview_of
from ...exceptions import PictureError
from ..answers import Item
from ..collection import Collection
from .picture_folders import JOURNAL, FolderRule


def find_original(collection: Collection, item: Item) -> Path | None:
    """Return the picture file that an item was made from, None if it is no longer where it was.

    References may come from anyone, so only a file that has the ending of a picture counts, that is not hidden, and
    that lies below one of the folders of the collection when all links are followed. If several folders have it, the
    one that looks like the preview of the item is meant.
    """
    if item.reference is None:
        return None
    places = FolderRule.read(collection.journal(JOURNAL)).places
    found = [path for place in places if (path := _file_below(place, item.reference)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    preview = collection.preview(item.id)
    return next((path for path in found if preview is not None and _looks_like(path, preview.content)), None)


def _file_below(place: str, reference: str) -> Path | None:
    if not is_picture_file(Path(reference)) or any(part.startswith(".") for part in Path(reference).parts):
        return None
    try:
        folder = Path(place).resolve()
        path = (folder / reference).resolve(strict=True)
        return path if path.is_relative_to(folder) and path.is_file() and is_picture_file(path) else None
    except (OSError, ValueError, RuntimeError):  # it is not there, is no name, or is a link in a circle
        return None


def _looks_like(path: Path, preview: bytes) -> bool:
    try:
        return preview_of(path) == preview
    except (PictureError, OSError):
        return False
