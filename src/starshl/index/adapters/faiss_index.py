"""FaissIndex: codes in a FAISS binary index, and conversions to and from existing FAISS indexes.

FAISS takes code lengths that are multiples of 8. Other codes are padded with zero bits, which never differ and so
never count. FAISS does not store ``n_bits`` or the space of the codes: keep both with the index. A
:class:`FaissIndex` knows them as long as it lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._common.extras import require
from ..._common.validation import check_integer
from ...codes.binary import BinaryCodes, n_bytes
from ...codes.queries import EncodedQueries
from ...exceptions import UnknownIdError
from ..base import (
    HammingIndex,
    Neighbors,
    RadiusNeighbors,
    Wanted,
    check_ids,
    check_metric,
    existing_id,
    next_ids,
)
from .database import StoredItems, items_of

if TYPE_CHECKING:
    from faiss import IndexBinary, IndexBinaryIDMap2

faiss = require("faiss", extra="faiss")


class FaissIndex(HammingIndex):
    """A ``faiss.IndexBinaryIDMap2`` of an ``IndexBinaryFlat``, with the answers of every other index here.

    FAISS leaves the order of equal distances open, so each query is searched a second time, for all items up to its
    k-th distance, which are then ordered by id. One call at a time reaches FAISS; others wait.

    Parameters
    ----------
    n_bits : int

    Attributes
    ----------
    faiss_index : the index of FAISS, for example to write it to a file

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1, 1], [-1, 1, 1], [-1, -1, -1]]))
    >>> index = FaissIndex(3)
    >>> index.add(codes, ids=[30, 20, 10]).tolist()
    [30, 20, 10]
    >>> distances, ids = index.search(codes[:1], k=2)
    >>> distances.tolist(), ids.tolist()
    ([[0, 1]], [[30, 20]])
    """

    supports = frozenset({"reconstruct", "remove", "threads"})

    def __init__(self, n_bits: int) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self.faiss_index = to_faiss(BinaryCodes(np.empty((0, n_bytes(self.n_bits)), np.uint8), self.n_bits))
        self._lock = Lock()

    @classmethod
    def from_collection(cls, collection: StoredItems) -> Self:
        """Copy the codes of a collection, with their ids; FAISS keeps no metadata, which ``collection.get`` returns.

        Search it with ``collection.hasher.hamming_codes(collection.hasher.encode_queries(X))``.
        """
        codes, ids, _ = items_of(collection)
        index = cls(codes.n_bits)
        index.add(codes, ids)
        return index

    @property
    def ids(self) -> np.ndarray:
        with self._lock:
            return np.sort(self._held()[1])

    def __len__(self) -> int:
        return int(self.faiss_index.ntotal)

    def _held(self) -> tuple[BinaryCodes, np.ndarray]:
        return from_faiss(self.faiss_index, self.n_bits)

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        with self._lock:
            held = self._held()[1]
            if ids is None:
                ids = next_ids(len(codes), held.max() if len(held) else None)
            present = np.isin(ids, held)
            if present.any():
                raise existing_id(ids[present][0])
            if len(ids):
                self.faiss_index.add_with_ids(np.ascontiguousarray(codes.packed), ids)
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        with self._lock:
            _positions(self._held()[1], ids)
            self.faiss_index.remove_ids(ids)

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        with self._lock:
            codes, held = self._held()
            return BinaryCodes(codes.packed[_positions(held, ids)], self.n_bits)

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        with self._lock:
            searched = self._among(wanted.among)
            k = min(k, int(searched.ntotal))
            distances, ids = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.int64)
            if k == 0 or not len(queries):
                return Neighbors(distances, ids)
            packed = np.ascontiguousarray(queries.codes.packed)
            radii = searched.search(packed, k)[0][:, -1]
            for radius in np.unique(radii):
                asking = np.flatnonzero(radii == radius)
                ball = _ball(searched, packed[asking], int(radius))
                for number, query in enumerate(asking):
                    distances[query], ids[query] = (part[:k] for part in ball.of(number))
        return Neighbors(distances, ids)

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        with self._lock:
            return _ball(self._among(wanted.among), np.ascontiguousarray(queries.codes.packed), int(radius))

    def _among(self, among: np.ndarray | None) -> IndexBinary:
        """Return an index of the items that may be returned: FAISS cannot filter its flat binary index."""
        if among is None:
            return self.faiss_index
        codes, ids = self._held()
        passing = np.isin(ids, among)
        return to_faiss(BinaryCodes(codes.packed[passing], self.n_bits), ids[passing])


def to_faiss(codes: BinaryCodes, ids: ArrayLike | None = None) -> IndexBinaryIDMap2:
    """Return a ``faiss.IndexBinaryIDMap2`` of an ``IndexBinaryFlat`` with these codes.

    Queries are ``codes.packed``, too. Note that ``range_search`` of FAISS finds distances *below* its radius, and that
    FAISS leaves the order of equal distances open.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1, 1], [-1, 1, 1], [-1, -1, -1]]))
    >>> index = to_faiss(codes, ids=[10, 20, 30])
    >>> index.search(codes.packed[:1], 3)[0].tolist()
    [[0, 1, 3]]
    """
    check_metric(codes, "FAISS", "hamming")
    ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
    flat = faiss.IndexBinaryFlat(8 * codes.packed.shape[1])
    index = faiss.IndexBinaryIDMap2(flat)
    # Python would free the flat index at the end of this function; from here on the id map owns it.
    flat.this.disown()
    index.own_fields = True
    if len(codes):
        index.add_with_ids(np.ascontiguousarray(codes.packed), ids)
    return index


def from_faiss(index: IndexBinary, n_bits: int, space_id: str | None = None) -> tuple[BinaryCodes, np.ndarray]:
    """Return the codes and ids of a FAISS binary index that keeps its codes (flat, or an id map of one).

    ``space_id`` is that of the codes that went in, if you know it.
    """
    if index.d != 8 * n_bytes(n_bits):
        raise ValueError(f"The FAISS index has {index.d} bits, which is not {n_bits} padded to whole bytes.")
    # The caller's object may be the only owner of the memory, so it is kept alive to the end.
    inner = faiss.downcast_IndexBinary(index)
    ids = np.arange(inner.ntotal)
    if hasattr(inner, "id_map"):
        ids = faiss.vector_to_array(inner.id_map)
        inner = faiss.downcast_IndexBinary(inner.index)
    if not hasattr(inner, "xb"):
        raise ValueError(f"A {type(inner).__name__} does not keep its codes in order. Use a flat FAISS index.")
    packed = faiss.vector_to_array(inner.xb).reshape(inner.ntotal, n_bytes(n_bits))
    return BinaryCodes(packed, n_bits, space_id), ids.astype(np.int64)


def _ball(index: IndexBinary, packed: np.ndarray, radius: int) -> RadiusNeighbors:
    """Return all items within a radius (inclusive) of each query, by distance and then by id."""
    if not index.ntotal or not len(packed):
        return RadiusNeighbors(np.zeros(len(packed) + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    starts, distances, ids = index.range_search(packed, radius + 1)
    starts, distances = starts.astype(np.int64), distances.astype(np.int32)
    queries = np.repeat(np.arange(len(packed)), np.diff(starts))
    order = np.lexsort((ids, distances, queries))
    return RadiusNeighbors(starts, distances[order], ids[order])


def _positions(held: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the position of each id, or raise KeyError for the first unknown one."""
    order = np.argsort(held)
    unknown = ~np.isin(ids, held)
    if unknown.any():
        raise UnknownIdError(int(ids[unknown][0]), "in the index")
    return order[np.searchsorted(held, ids, sorter=order)]
