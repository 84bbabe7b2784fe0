"""What a page holds of a collection: codes, labels, titles and previews, as named parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..collection import Collection
from ..exceptions import CollectionError

__all__ = ["PageItems", "Track", "read_items"]

_BATCH = 5000  # items that are read at a time

# Shows progress over batches, given how many there are.
Track = Callable[[Iterable[np.ndarray], int], Iterable[np.ndarray]]


@dataclass(frozen=True, slots=True)
class PageItems:
    """The items of a page.

    Parameters
    ----------
    codes : array of shape (n_items, n_words), uint32, by ascending id
    items : ids, labels, titles and where previews end, as JSON holds them
    previews : all of them, one after the other
    preview_types : their media types, by number
    """

    codes: np.ndarray
    items: dict[str, Any]
    previews: bytes
    preview_types: list[str]

    @property
    def n_previews(self) -> int:
        ends = [0, *self.items.get("preview_ends", [])]
        return int(np.count_nonzero(np.diff(ends)))

    def json(self) -> bytes:
        return json.dumps(self.items, separators=(",", ":"), ensure_ascii=False).encode()


def read_items(collection: Collection, max_preview_bytes: int, track: Track | None = None) -> PageItems:
    """Read all items of a collection, which must not change in the meantime.

    Previews that take more than ``max_preview_bytes`` together are all left out.
    """
    version, ids = collection.version, collection.ids
    batches = [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]
    reader = _Reader(collection, max_preview_bytes)
    for batch in batches if track is None else track(batches, len(batches)):
        reader.read(batch)
    if collection.version != version:
        raise CollectionError("The collection changed while it was read. Export it again.")
    return reader.result(ids)


class _Reader:
    """Collects items batch by batch."""

    def __init__(self, collection: Collection, max_preview_bytes: int) -> None:
        self.collection, self.max_preview_bytes = collection, max_preview_bytes
        self.packed: list[np.ndarray] = []
        self.labels: list[Any] = []
        self.titles: list[str] = []
        self.has_titles = False
        self.contents: list[bytes] = []
        self.n_bytes = 0
        self.types: list[str] = []

    def read(self, ids: np.ndarray) -> None:
        self.packed.append(self.collection.codes(ids).packed)
        for item in self.collection.get(ids):
            self.labels.append(item.label)
            self.titles.append(self.collection.title_of(item))
            self.has_titles |= self.titles[-1] != f"Item {item.id}"
            if self.n_bytes <= self.max_preview_bytes:
                self._read_preview(item.id)

    def _read_preview(self, item: int) -> None:
        preview = self.collection.preview(item)
        self.contents.append(b"" if preview is None else preview.content)
        self.types.append("" if preview is None else preview.media_type)
        self.n_bytes += len(self.contents[-1])

    def result(self, ids: np.ndarray) -> PageItems:
        # Numbers of scripts are exact up to 2**53; the page only shows and compares ids, so text serves as well.
        is_exact = not len(ids) or max(abs(int(ids.min())), int(ids.max())) <= 2**53
        items: dict[str, Any] = {"ids": ids.tolist() if is_exact else [str(number) for number in ids.tolist()]}
        if self.has_titles:
            items["titles"] = self.titles
        names = sorted({label for label in self.labels if label is not None}, key=str)
        if names:
            place = {label: number for number, label in enumerate(names)}
            items["label_names"] = [str(name) for name in names]
            items["labels"] = [-1 if label is None else place[label] for label in self.labels]
        types: list[str] = []
        has_previews = 0 < self.n_bytes <= self.max_preview_bytes
        if has_previews:
            types = sorted({name for name in self.types if name})
            items["preview_ends"] = np.cumsum([len(content) for content in self.contents]).tolist()
            items["preview_types"] = [types.index(name) if name else 0 for name in self.types]
        previews = b"".join(self.contents) if has_previews else b""
        return PageItems(_words(self.packed, self.collection.n_bits), items, previews, types)


def _words(packed: list[np.ndarray], n_bits: int) -> np.ndarray:
    """Return codes as 32-bit words, little end first, the last one filled up with zeros."""
    codes = np.concatenate([np.empty((0, -(-n_bits // 8)), np.uint8), *packed])
    n_words = -(-n_bits // 32)
    padded = np.zeros((len(codes), 4 * n_words), np.uint8)
    padded[:, : codes.shape[1]] = codes
    return padded.view("<u4")
