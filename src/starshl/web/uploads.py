"""Pictures to search with: read within limits, and made into vectors by the extractor of the collection."""

from __future__ import annotations

from ..features import preview_of
from .searcher import Searcher
from .workshop import Upload

__all__ = ["read_upload"]


def read_upload(searcher: Searcher, content: bytes, name: str) -> Upload:
    """Return the vector of a picture file and a small picture of it, or say why it cannot be used."""
    if not content:
        raise ValueError("No picture arrived. Choose a JPEG, PNG or WebP file.")
    with searcher.opened() as collection:
        if collection.kind != "pictures" or collection.extractor is None:
            raise ValueError(
                "This collection was not made from pictures, so it cannot be searched with one. Search by id, or make "
                "a collection with: starshl images FOLDER."
            )
        preview = preview_of(content)
        return Upload(collection.extract([content])[0], preview, _media_type(preview), name)


def _media_type(preview: bytes) -> str:
    return "image/png" if preview.startswith(b"\x89PNG") else "image/webp" if preview[:4] == b"RIFF" else "image/jpeg"
