"""Previews: a small picture of an item, stored in the transaction of the item and gone with it.

They have a table of their own, so that rows stay small. Two meta entries, how many there are and the sum of their
checksums, tell whether one was lost.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from .._common.words import counted
from ..exceptions import CollectionFormatError
from .answers import Preview
from .blocks import IDS
from .database import HAS_LISTED_ID
from .store import Store

#: Bytes of one preview.
LARGEST_PREVIEW = 1 << 18
#: The media types of previews: all browsers show them.
PREVIEW_TYPES = ("image/png", "image/jpeg", "image/webp")
_ID = struct.Struct("<q")


def check_previews(previews: Iterable[bytes | None] | None, n_items: int) -> list[bytes | None] | None:
    """Return one preview per item, or None; refuse what no browser would show, and what is not small."""
    if previews is None:
        return None
    given = list(previews)
    if len(given) != n_items:
        raise ValueError(
            f"{counted(len(given), 'preview')} for {counted(n_items, 'item')}. Give one per item, None where there is "
            "none."
        )
    for preview in given:
        if preview is None:
            continue
        if not isinstance(preview, bytes) or _media_type(preview) is None:
            raise ValueError(
                f"A preview is {_shown(preview)}; it must be the bytes of a PNG, JPEG or WebP file. Make one with "
                "starshl.data.features.preview_of."
            )
        if len(preview) > LARGEST_PREVIEW:
            raise ValueError(
                f"A preview has {len(preview):,} bytes; up to {LARGEST_PREVIEW:,} are allowed. Make it smaller."
            )
    return given


def put_previews(store: Store, ids: np.ndarray, previews: Sequence[bytes | None] | None) -> None:
    """Store the previews of new items; only inside a change."""
    if previews is None:
        return
    kept = [(item, preview) for item, preview in zip(ids.tolist(), previews, strict=True) if preview is not None]
    sums = [_checksum(item, preview) for item, preview in kept]
    store.connection.execute_many(
        "INSERT INTO previews (id, checksum, content) VALUES (?, ?, ?)",
        ((item, total, preview) for (item, preview), total in zip(kept, sums, strict=True)),
    )
    store.count("previews", len(kept), sum(sums))


def delete_previews(store: Store, ids: Sequence[int]) -> None:
    """Delete the previews of items, where they have some; only inside a change."""
    if not ids:
        return
    chosen = [json.dumps(list(ids))]
    n_gone, total = store.connection.execute(
        f"SELECT count(*), coalesce(sum(checksum), 0) FROM previews WHERE {HAS_LISTED_ID}", chosen
    ).fetchone()
    if n_gone:
        store.connection.execute(f"DELETE FROM previews WHERE {HAS_LISTED_ID}", chosen)
        store.count("previews", -n_gone, -total)


def find_preview(store: Store, item: int) -> Preview | None:
    """Return the preview of an item, None if it has none; refuse a damaged one, and an unknown id."""
    store.rows([item])
    record = store.connection.execute("SELECT id, checksum, content FROM previews WHERE id = ?", [item]).fetchone()
    return None if record is None else _checked(record)


def verify_previews(store: Store) -> None:
    """Compare every preview with its checksum, and their number with what was stored."""
    n_previews, total, owners = 0, 0, []
    for record in store.connection.execute("SELECT id, checksum, content FROM previews"):
        _checked(record)
        n_previews, total = n_previews + 1, total + record[1]
        owners.append(record[0])
    stray = np.setdiff1d(np.array(owners, np.int64), store.column(IDS).values)
    if len(stray):
        raise CollectionFormatError.damaged(f"it has a preview of item {stray[0]}, which it does not hold")
    store.check_count("previews", n_previews, total)


def _checked(record: tuple[int, int, bytes]) -> Preview:
    item, total, content = record
    media_type = _media_type(content) if isinstance(content, bytes) else None
    if media_type is None or total != _checksum(item, content):
        raise CollectionFormatError.damaged(f"its preview of item {item} does not match its checksum")
    return Preview(content, media_type)


def _media_type(content: bytes) -> str | None:
    """Return what a file is by its first bytes; nothing else is ever sent to a browser as a picture."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return PREVIEW_TYPES[0]
    if content.startswith(b"\xff\xd8\xff"):
        return PREVIEW_TYPES[1]
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return PREVIEW_TYPES[2]
    return None


def _checksum(item: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(_ID.pack(item)))


def _shown(preview: object) -> str:
    if isinstance(preview, bytes):
        return f"{counted(len(preview), 'byte')} beginning with {preview[:8]!r}"
    return f"of type {type(preview).__name__}"
