"""What is no vector yet: pictures, texts and rows of tables, made into vectors within limits, a few at a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from ..collection.embedding import stored_text
from ..collection.vectors import kept_rows
from ..data.features.picture_files import open_picture, preview_of
from ..data.tables.cells import is_number
from ..exceptions import MissingExtraError
from ..hashers.base import BaseHasher
from ..hashers.columns import fills_gaps, number_columns
from .batching import map_future
from .errors import BusyError, NotInstalledError
from .searcher import Searcher
from .writes import NewItems

Result = TypeVar("Result")
_MOST_PIXELS = 40_000_000  # of a picture, which may take 200 MB while it is decoded
_DECODED_SIDE = 512  # enough for every embedder here: JPEG files are decoded at about twice this size
_COMMANDS = {
    "pictures": "starshl images FOLDER -o COLLECTION",
    "texts": "starshl texts FILE --text COLUMN -o COLLECTION",
}
# Few at a time: each may take much memory, and a queue of them must not keep other requests from their threads.
_AT_ONCE, _MOST_WAITING = 2, 64
_pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="embed")
_slots = threading.BoundedSemaphore(_AT_ONCE + _MOST_WAITING)
_MOST_NAMES = 20  # of columns, in a message
_MAX_CELL = 80  # letters of a cell in a message
Cell = str | int | float | None
TableRow = Mapping[str, Cell] | Sequence[Cell]


def picture_vector(searcher: Searcher, content: bytes) -> Future[np.ndarray]:
    """Return the vector of a picture, given as the bytes of a picture file; shape (1, n_columns)."""
    return _in_pool(lambda: _embed_picture(searcher, content)[0])


def picture_and_preview(searcher: Searcher, content: bytes) -> Future[tuple[np.ndarray, bytes]]:
    """Return the vector of a picture, as above, and a small picture of it as the bytes of a WebP file."""

    def embed() -> tuple[np.ndarray, bytes]:
        vectors, picture = _embed_picture(searcher, content)
        return vectors, preview_of(picture)

    return _in_pool(embed)


def text_vectors(searcher: Searcher, texts: Sequence[str]) -> Future[np.ndarray]:
    """Return the vectors of texts."""

    def embed() -> np.ndarray:
        _check_kind(searcher, "texts")
        return _embed(searcher, list(texts))

    return _in_pool(embed)


def text_items(searcher: Searcher, texts: Sequence[str], items: NewItems) -> Future[NewItems]:
    """Return items with the vectors of their texts; a text becomes the title of its item, unless it has one."""

    def complete(vectors: np.ndarray) -> NewItems:
        with searcher.opened() as collection:
            title = collection.title
        metadata = items.metadata or [{}] * len(texts)
        if title is not None:
            metadata = [{title: stored_text(text), **entry} for text, entry in zip(texts, metadata, strict=True)]
        return replace(items, vectors=vectors, metadata=metadata)

    return map_future(text_vectors(searcher, texts), complete)


def warm_up(searcher: Searcher) -> None:
    """Embed an example, so that no request waits for a network that is loaded on first use."""
    with searcher.opened() as collection:
        examples = {"pictures": np.zeros((8, 8, 3), np.uint8), "texts": "text"}
        # A library that is missing, or a step that must be passed again, is told to whoever needs it.
        with suppress(MissingExtraError, ValueError):
            if collection.kind in examples and collection.embedder is not None:
                collection.embed([examples[collection.kind]])


def _embed_picture(searcher: Searcher, content: bytes) -> tuple[np.ndarray, Any]:
    """Return the vector of a picture, and the picture."""
    _check_kind(searcher, "pictures")
    picture = open_picture(content, side=_DECODED_SIDE, max_pixels=_MOST_PIXELS)
    return _embed(searcher, [picture]), picture


def _check_kind(searcher: Searcher, kind: str) -> None:
    with searcher.opened() as collection:
        takes = collection.takes
        if kind not in takes:
            raise ValueError(
                f"The items of this collection are {collection.kind}, so it takes no {kind}. Send "
                f"{' or '.join([*takes, 'vectors'])}, or make a collection of {kind} with: {_COMMANDS[kind]}."
            )


def _embed(searcher: Searcher, things: list[Any]) -> np.ndarray:
    with searcher.opened() as collection:
        return collection.embed(things, warn_unknown=False)


def _in_pool(work: Callable[[], Result]) -> Future[Result]:
    """Do the work in a thread, which waits instead of the caller while a collection is replaced."""
    if not _slots.acquire(blocking=False):
        raise BusyError(f"{_MOST_WAITING} pictures or texts are waiting already. Try again in a moment.")

    def run() -> Result:
        try:
            return work()
        except MissingExtraError as error:
            # Not the fault of the request.
            raise NotInstalledError(f"The service lacks a library. {error}") from error

    future = _pool.submit(run)
    future.add_done_callback(lambda _: _slots.release())
    return future


def row_vectors(searcher: Searcher, rows: Sequence[TableRow], name: str = "rows[{}]") -> Future[np.ndarray]:
    """Return what the hasher makes of rows before it encodes them, or the cells if it has nothing to make.

    ``name`` is what errors call a row, with its number in place of the braces.
    """

    def prepare() -> np.ndarray:
        with searcher.opened() as collection:
            hasher = collection.hasher
            if collection.kind == "rows":
                return collection.embed(_numbers(rows, name), warn_unknown=False)
        cells = _cells(hasher, rows, name)
        width = hasher.vector_width
        return cells if width is None or width == cells.shape[1] else kept_rows(hasher, cells, width)

    return _in_pool(prepare)


def row_items(searcher: Searcher, rows: Sequence[TableRow], items: NewItems) -> Future[NewItems]:
    """Return items with what the hasher makes of their rows; columns that other items have as metadata join it."""

    def complete(vectors: np.ndarray) -> NewItems:
        with searcher.opened() as collection:
            names = collection.hasher.feature_names
            shared = collection.kept_features()
        metadata = list(items.metadata or [{}] * len(rows))
        for number, row in enumerate(rows if shared else ()):
            cells = row if isinstance(row, Mapping) else dict(zip(names, row, strict=True))
            metadata[number] = {name: cells[name] for name in shared} | dict(metadata[number])
        return replace(items, vectors=vectors, metadata=metadata)

    return map_future(row_vectors(searcher, rows, "items[{}].row"), complete)


def _numbers(rows: Sequence[TableRow], name: str) -> np.ndarray:
    """Return rows for an embedder, which takes numbers in their order."""
    for number, row in enumerate(rows):
        if isinstance(row, Mapping) or not all(isinstance(cell, int | float) for cell in row):
            raise ValueError(f"{name.format(number)} holds more than numbers. The embedder takes lists of numbers.")
        if len(row) != len(rows[0]):
            told = f"{name.format(number)} has {len(row)} values, and {name.format(0)} has {len(rows[0])}"
            raise ValueError(f"{told}. Send rows of one length.")
    return np.array(rows, dtype=np.float64)


def _cells(hasher: BaseHasher, rows: Sequence[TableRow], name: str) -> np.ndarray:
    """Return rows as a matrix of cells in the order of the columns that the hasher was fitted on."""
    if not hasher.takes_cells:
        raise ValueError(
            "The hasher of this collection takes vectors, not rows of a table with text. Send vectors: lists of "
            "numbers."
        )
    width = int(hasher.n_features_in_)
    names = hasher.feature_names
    cells = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        if isinstance(row, Mapping):
            cells[number] = _in_order(row, names, name.format(number))
        elif len(row) != width:
            given = f"{name.format(number)} has {len(row)} values"
            raise ValueError(f"{given}; a row has {width}{_listed(names)}. Send all.")
        else:
            cells[number] = list(row)
    _check_numbers(hasher, cells, names, name)
    return cells


def _check_numbers(hasher: BaseHasher, cells: np.ndarray, names: Sequence[str], name: str) -> None:
    """Refuse what is no number where the hasher was fitted on numbers; its steps do not know rows and names."""
    takes_gaps = fills_gaps(hasher)
    for column in number_columns(hasher) or ():
        where = repr(names[column]) if names else f"column {column}, counted from 0"
        for number, cell in enumerate(cells[:, column].tolist()):
            if cell is None and not takes_gaps:
                raise ValueError(
                    f"{name.format(number)} has no value in {where}, and the model was not fitted to fill gaps. Send a "
                    "number."
                )
            if isinstance(cell, str) and not (is_number(cell) and not math.isinf(float(cell))):
                raise ValueError(
                    f"{name.format(number)} has {cell[:_MAX_CELL]!r} in {where}; the model was fitted on numbers "
                    f"there. Send a number{', or null if it is missing' if takes_gaps else ''}."
                )


def _in_order(row: Mapping[str, Cell], names: Sequence[str], which: str) -> list[Any]:
    if not names:
        raise ValueError(f"{which} names columns, and those of this collection have no names. Send lists.")
    missing, unknown = [name for name in names if name not in row], sorted(set(row) - set(names))
    if missing or unknown:
        what = f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r}, which is no column here"
        raise ValueError(
            f"{which} {what}. A row has {len(names)} values{_listed(names)}. Send these, null where a value is missing."
        )
    return [cast(Any, row[name]) for name in names]


def _listed(names: Sequence[str]) -> str:
    return f": {', '.join(names[:_MOST_NAMES])}{', ...' if len(names) > _MOST_NAMES else ''}" if names else ""
