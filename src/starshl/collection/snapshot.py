"""What a collection holds in memory: the hasher and the index of one state of the file, never changed afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from ..base import BaseHasher
from ..codes import BinaryCodes, n_bytes
from ..exceptions import CollectionFormatError
from ..index import make_index
from ..index.scan import ScanIndex
from .folder import Kernels, load_model
from .store import Row, Store

__all__ = ["Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state: its number, the hasher by name and as an object, and the codes.

    Threads search it while others make the next one. ``n_at_choice`` is how many items there were when the kind of
    index was chosen.
    """

    generation: int
    model: str
    hasher: BaseHasher
    index: ScanIndex
    n_at_choice: int

    @classmethod
    def read(cls, store: Store, folder: Path, kernels: Kernels, n_jobs: int | None) -> Self:
        """Read the model and every code of the state that ``store`` sees."""
        model = store.model_name()
        hasher = load_model(folder, model, kernels)
        n_bits = hasher.n_bits_
        if store.fact("n_bits") != n_bits:
            raise CollectionFormatError(
                f"The codes have {store.fact('n_bits')} bits, those of the model {n_bits}: the collection is damaged. "
                "Restore it from a copy."
            )
        ids, codes = _unpacked(store.all_rows(), n_bits)
        return cls(store.fact("generation"), model, hasher, make_index(codes, ids, n_jobs=n_jobs), max(len(ids), 1))

    def caught_up(self, store: Store) -> Self | None:
        """Return the state that ``store`` sees by reading only what changed, or None if that is not listed."""
        changed = store.changed_since(self.generation)
        if changed is None or store.model_name() != self.model:
            return None
        ids, codes = _unpacked(store.rows(store.present(changed)), self.index.n_bits)
        gone = np.intersect1d(np.array(changed, np.int64), self.index.ids)
        successor = self.changed(store.fact("generation"), gone, codes, ids)
        return successor if len(successor.index) == store.fact("n_items") else None

    def changed(
        self, generation: int, gone: np.ndarray | None, codes: BinaryCodes | None, ids: np.ndarray | None
    ) -> Self:
        """Return the state after some items were removed and others added.

        The kind of index is chosen again whenever the number of items has doubled.
        """
        # A copy that shares the arrays: changing an index never changes what its copies see.
        index = copy(self.index)
        if gone is not None and len(gone):
            index.remove(gone)
        if codes is not None:
            index.add(codes, ids)
        if len(index) < 2 * self.n_at_choice:
            return replace(self, generation=generation, index=index)
        held = np.sort(index.ids)
        index = make_index(index.reconstruct(held), held, n_jobs=index.n_jobs)
        return replace(self, generation=generation, index=index, n_at_choice=len(held))


def _unpacked(rows: Iterable[Row], n_bits: int) -> tuple[np.ndarray, BinaryCodes]:
    """Return ids and codes of rows."""
    pairs = [(row.id, row.code) for row in rows]
    width = n_bytes(n_bits)
    content = b"".join(code for _, code in pairs)
    if any(len(code) != width for _, code in pairs):
        raise CollectionFormatError(
            f"A code does not have the {width} bytes of {n_bits} bits: the collection is damaged. Restore it from a "
            "copy."
        )
    packed = np.frombuffer(content, np.uint8).reshape(len(pairs), width)
    return np.array([item for item, _ in pairs], np.int64), BinaryCodes(packed, n_bits)
