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
from .quantization import KINDS, RecordLayout
from .store import Row, Store
from .vectors import VectorFile

__all__ = ["Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state: its number, the hasher by name and as an object, the codes, and the file of vectors if it keeps them.

    Threads search it while others make the next one. ``n_at_choice`` is how many items there were when the kind of
    index was chosen.
    """

    generation: int
    model: str
    hasher: BaseHasher
    index: ScanIndex
    n_at_choice: int
    vectors: VectorFile | None

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
        vectors = _vector_file(store, folder)
        ids, codes = _unpacked(_with_places(store.all_rows(), store, vectors), n_bits)
        index = make_index(codes, ids, hasher=hasher, n_jobs=n_jobs)
        return cls(store.fact("generation"), model, hasher, index, max(len(ids), 1), vectors)

    def caught_up(self, store: Store) -> Self | None:
        """Return the state that ``store`` sees by reading only what changed, or None if that is not listed."""
        changed = store.changed_since(self.generation)
        if changed is None or store.model_name() != self.model or _vector_file_name(store) != self.vector_file_name:
            return None
        if self.vectors is not None:
            self.vectors.check_length(store.fact("n_slots"))
        rows = _with_places(store.rows(store.present(changed)), store, self.vectors)
        ids, codes = _unpacked(rows, self.index.n_bits)
        gone = np.intersect1d(np.array(changed, np.int64), self.index.ids)
        successor = self.changed(store.fact("generation"), gone, codes, ids)
        return successor if len(successor.index) == store.fact("n_items") else None

    @property
    def vector_file_name(self) -> str:
        return "" if self.vectors is None else self.vectors.name

    def require_vectors(self) -> VectorFile:
        """Return the file of vectors, or say how to get one."""
        if self.vectors is None:
            raise ValueError(
                "This collection keeps no vectors. Make one that does: Collection.create(..., vectors='float16')."
            )
        return self.vectors

    def vectors_of(self, store: Store, ids: list[int]) -> np.ndarray:
        """Return the kept vectors of items."""
        return self.require_vectors().read(ids, store.places(ids))

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
        index = make_index(index.reconstruct(held), held, hasher=self.hasher, n_jobs=index.n_jobs)
        return replace(self, generation=generation, index=index, n_at_choice=len(held))


def _vector_file_name(store: Store) -> str:
    return "" if store.is_outdated else store.text_fact("vector_file")


def _vector_file(store: Store, folder: Path) -> VectorFile | None:
    """Return the file of vectors that a state names, None if it keeps none."""
    name = _vector_file_name(store)
    if not name:
        return None
    kind, n_columns = store.text_fact("vector_kind"), store.fact("n_columns")
    if kind not in KINDS or n_columns < 1:
        raise CollectionFormatError(
            f"The collection claims to keep {kind!r} vectors of {n_columns} numbers: it is damaged. Restore it from a "
            "copy."
        )
    file = VectorFile(folder, name, RecordLayout(kind, n_columns))
    file.check_length(store.fact("n_slots"))
    return file


def _with_places(rows: Iterable[Row], store: Store, vectors: VectorFile | None) -> Iterable[Row]:
    """Yield rows whose vectors are where they can be: in a slot that is taken, or nowhere if none are kept."""
    n_slots = 0 if vectors is None else store.fact("n_slots")
    for row in rows:
        if (row.slot is None) != (vectors is None) or (row.slot is not None and not 0 <= row.slot < n_slots):
            raise CollectionFormatError(
                f"The item {row.id} has its vector in slot {row.slot}, and {n_slots} are taken: the collection is "
                "damaged. Restore it from a copy."
            )
        yield row


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
