"""Kept vectors that move to a new file: without the gaps that removed items leave, or all replaced by others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from .._threads import tiles
from .quantization import RecordLayout
from .snapshot import Snapshot
from .store import Store
from .vectors import append_records, new_file_name, sums

__all__ = ["batches", "compact_vectors", "replace_vectors"]

_ITEMS_AT_ONCE = 4096  # 32 MB if a vector has 2,000 float32 numbers


def batches(ids: list[int]) -> Iterator[list[int]]:
    """Yield ids in portions whose vectors fit in memory."""
    for part in tiles(len(ids), _ITEMS_AT_ONCE):
        yield ids[part]


def compact_vectors(folder: Path, store: Store, snapshot: Snapshot, generation: int) -> str:
    """Copy the vectors of all items to a new file without gaps; return its name. Only inside a change."""
    file = snapshot.require_vectors()
    ids = np.sort(snapshot.index.ids).tolist()
    portions = ((portion, file.records(portion, store.places(portion))) for portion in batches(ids))
    return _write(folder, store, portions, file.layout, generation)


def replace_vectors(folder: Path, store: Store, ids: list[int], vectors: np.ndarray, kind: str, generation: int) -> str:
    """Write new vectors of all items to a new file; return its name. Only inside a change."""
    layout = RecordLayout(kind, vectors.shape[1])
    portions = ((ids[part], layout.pack(vectors[part])) for part in tiles(len(ids), _ITEMS_AT_ONCE))
    return _write(folder, store, portions, layout, generation)


def _write(
    folder: Path,
    store: Store,
    portions: Iterable[tuple[list[int], np.ndarray]],
    layout: RecordLayout,
    generation: int,
) -> str:
    name = new_file_name(generation)
    path = folder / name
    # What a change of the same number may have left, before it failed.
    path.unlink(missing_ok=True)
    append_records(path, np.empty(0, layout.dtype), 0)
    try:
        n_slots = 0
        for ids, records in portions:
            append_records(path, records, n_slots)
            _move(store, ids, n_slots, sums(ids, records))
            n_slots += len(ids)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    store.set_fact("vector_file", name)
    store.set_fact("n_columns", layout.n_columns)
    store.set_fact("n_slots", n_slots)
    return name


def _move(store: Store, ids: list[int], first_slot: int, totals: list[int]) -> None:
    """Give items new slots, one after the other."""
    rows = store.rows(ids)
    store.move(
        row._replace(slot=slot, vector_sum=total)
        for slot, (row, total) in enumerate(zip(rows, totals, strict=True), first_slot)
    )
