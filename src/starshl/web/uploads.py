"""Pictures to search with on a page: their vectors, and small pictures of them to show."""

from __future__ import annotations

from concurrent.futures import Future

from ..features.picture_files import KINDS
from .futures import mapped
from .raw import picture_and_preview
from .searcher import Searcher
from .workshop import Upload

__all__ = ["read_upload"]


def read_upload(searcher: Searcher, content: bytes, name: str) -> Future[Upload]:
    """Return the vector of a picture file and a small picture of it, or say why it cannot be used."""
    if not content:
        raise ValueError(f"No picture arrived. Choose a {KINDS} file.")
    return mapped(picture_and_preview(searcher, content), lambda found: Upload(found[0][0], found[1], name))
