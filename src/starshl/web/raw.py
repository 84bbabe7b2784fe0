"""Pictures and texts from outside: made into vectors within limits, a few at a time, and previews of stored items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..collection import Preview
from ..exceptions import MissingExtraError
from ..features import open_picture, preview_of
from .errors import BusyError, NotInstalledError, UnknownError
from .futures import mapped
from .present import unknown_ids
from .requests import NewItems
from .searcher import Searcher

__all__ = ["picture_and_preview", "picture_vector", "preview", "submitted", "text_items", "text_vectors", "warm_up"]

Result = TypeVar("Result")

#: Pixels of a picture that is sent; it may take 200 MB while it is decoded.
LARGEST = 40_000_000
_DECODED_SIDE = 512  # enough for every extractor here: JPEG files are decoded at about twice this size

_COMMANDS = {
    "pictures": "starshl images FOLDER -o COLLECTION",
    "texts": "starshl texts FILE --text COLUMN -o COLLECTION",
}

# Few at a time: each may take much memory, and a queue of them must not keep other requests from their threads.
_AT_ONCE, _MOST_WAITING = 2, 64
_pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="extract")
_places = threading.BoundedSemaphore(_AT_ONCE + _MOST_WAITING)


def picture_vector(searcher: Searcher, content: bytes) -> Future[np.ndarray]:
    """Return the vector of a picture, given as the bytes of a picture file; shape (1, n_columns)."""
    return _submitted(searcher, "pictures", lambda: _extracted(searcher, [_decoded(content)]))


def picture_and_preview(searcher: Searcher, content: bytes) -> Future[tuple[np.ndarray, bytes]]:
    """Return the vector of a picture, as above, and a small picture of it as the bytes of a WebP file."""

    def extract() -> tuple[np.ndarray, bytes]:
        picture = _decoded(content)
        return _extracted(searcher, [picture]), preview_of(picture)

    return _submitted(searcher, "pictures", extract)


def text_vectors(searcher: Searcher, texts: Sequence[str]) -> Future[np.ndarray]:
    """Return the vectors of texts."""
    return _submitted(searcher, "texts", lambda: _extracted(searcher, list(texts)))


def text_items(searcher: Searcher, texts: Sequence[str], items: NewItems) -> Future[NewItems]:
    """Return items with the vectors of their texts; a text becomes the title of its item, unless it has one."""

    def complete(vectors: np.ndarray) -> NewItems:
        with searcher.opened() as collection:
            title = collection.title
        metadata = items.metadata or [{}] * len(texts)
        if title is not None:
            metadata = [{title: text, **entry} for text, entry in zip(texts, metadata, strict=True)]
        return replace(items, vectors=vectors, metadata=metadata)

    return mapped(text_vectors(searcher, texts), complete)


def preview(searcher: Searcher, item: int) -> Preview:
    """Return the small picture of an item."""
    with searcher.opened() as collection, unknown_ids():
        found = collection.preview(item)
    if found is None:
        raise UnknownError(f"The item {item} has no preview. Previews are stored when a picture is imported.")
    return found


def warm_up(searcher: Searcher) -> None:
    """Extract the features of an example, so that no request waits for a network that is loaded on first use."""
    with searcher.opened() as collection:
        examples = {"pictures": np.zeros((8, 8, 3), np.uint8), "texts": "text"}
        # A library that is missing, or a step that must be passed again, is told to whoever needs it.
        with suppress(MissingExtraError, ValueError):
            if collection.kind in examples and collection.extractor is not None:
                collection.extract([examples[collection.kind]])


def _decoded(content: bytes) -> Any:
    return open_picture(content, side=_DECODED_SIDE, max_pixels=LARGEST)


def _extracted(searcher: Searcher, raw: list[Any]) -> np.ndarray:
    with searcher.opened() as collection:
        return collection.extract(raw, warn_unknown=False)


def _submitted(searcher: Searcher, kind: str, work: Callable[[], Result]) -> Future[Result]:
    """Do the work in a thread if the items of the collection are of this kind."""

    def check_and_work() -> Result:
        _check_kind(searcher, kind)
        return work()

    return submitted(check_and_work)


def submitted(work: Callable[[], Result]) -> Future[Result]:
    """Do the work in a thread, which waits instead of the caller while a collection is swapped."""
    if not _places.acquire(blocking=False):
        raise BusyError(f"{_MOST_WAITING} pictures or texts are waiting already. Try again in a moment.")

    future = _pool.submit(_explained, work)
    future.add_done_callback(lambda _: _places.release())
    return future


def _check_kind(searcher: Searcher, kind: str) -> None:
    with searcher.opened() as collection:
        if collection.kind != kind:
            raise ValueError(
                f"The items of this collection are {collection.kind}, so it takes no {kind}. Send "
                f"{'vectors' if collection.kind == 'vectors' else f'{collection.kind} or vectors'}, or make a "
                f"collection of {kind} with: {_COMMANDS[kind]}."
            )


def _explained(work: Callable[[], Result]) -> Result:
    """Do the work; a missing library is not the fault of the request."""
    try:
        return work()
    except MissingExtraError as error:
        raise NotInstalledError(f"The service lacks a library. {error}") from error
