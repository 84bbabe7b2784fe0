"""What networks made of items, in the user's cache: the same items need not go through the network again."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..._common.platform import user_cache
from .step import Reader

# Tests make it larger, to leave the user's cache alone.
FEWEST = 32  # items that are worth a look: queries leave no trace on the disk
_LARGEST = 2 << 30  # bytes of a file; a larger one is begun anew
_ASKED = 500  # keys per question to SQLite
_TABLE = "CREATE TABLE IF NOT EXISTS rows (item BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"


class EmbeddingCache:
    """Rows by the SHA-256 of items, one file for each network and its settings.

    It holds no item. A file that is damaged, locked or on a full disk costs nothing but time.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, steps: Sequence[Any]) -> EmbeddingCache | None:
        """Return the cache of what these steps make of items, None if they are fast or no file can describe them."""
        if not all(isinstance(step, Reader) for step in steps) or not any(step.is_slow for step in steps):
            return None
        text = json.dumps([step.pack("", {}) for step in steps], sort_keys=True)
        return cls(user_cache() / "embeddings" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.sqlite")

    def rows(self, items: Sequence[Any], make: Callable[[Sequence[Any]], np.ndarray]) -> np.ndarray:
        """Return what ``make`` makes of items, of which known ones are only looked up."""
        if len(items) < FEWEST:
            return make(items)
        keys = [_key(item) for item in items]
        known = self._read([key for key in keys if key is not None])
        missing = [place for place, key in enumerate(keys) if key not in known]
        made = dict(zip(missing, make([items[place] for place in missing]) if missing else (), strict=True))
        self._write({key: row for place, row in made.items() if (key := keys[place]) is not None})
        return np.stack([made[place] if place in made else known[key] for place, key in enumerate(keys)])

    def _read(self, keys: Sequence[bytes]) -> dict[bytes | None, np.ndarray]:
        found: dict[bytes | None, np.ndarray] = {}
        if not keys or not self.file.is_file():
            return found
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.file)) as database:
            for start in range(0, len(keys), _ASKED):
                some = keys[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                for key, row in database.execute(f"SELECT item, row FROM rows WHERE item IN ({marks})", some):
                    found[key] = np.frombuffer(row, np.float32)
        sizes = {row.size for row in found.values()}
        return found if len(sizes) <= 1 else {}

    def _write(self, rows: dict[bytes, np.ndarray]) -> None:
        if not rows:
            return
        with suppress(sqlite3.Error, OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            if self.file.is_file() and self.file.stat().st_size > _LARGEST:
                self.file.unlink()
            try:
                self._store(rows)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked or full, not damaged
                    raise
                self.file.unlink()
                self._store(rows)

    def _store(self, rows: dict[bytes, np.ndarray]) -> None:
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute(_TABLE)
            stored = ((key, np.asarray(row, np.float32).tobytes()) for key, row in rows.items())
            database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", stored)


def _key(item: Any) -> bytes | None:
    """Return the SHA-256 of an item's contents, None if it has none that can be read here."""
    if isinstance(item, str):
        kind, content = b"text", item.encode(errors="surrogatepass")
    elif isinstance(item, bytes):
        kind, content = b"file", item
    elif isinstance(item, os.PathLike):
        try:
            kind, content = b"file", Path(item).read_bytes()
        except OSError:
            return None
    elif isinstance(item, np.ndarray):
        kind, content = f"array {item.shape} {item.dtype}".encode(), np.ascontiguousarray(item).tobytes()
    elif hasattr(item, "tobytes") and hasattr(item, "mode"):
        kind, content = f"picture {item.mode} {item.size}".encode(), item.tobytes()
    else:
        return None
    return hashlib.sha256(kind + b"\n" + content).digest()
