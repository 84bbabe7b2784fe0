"""FaissIndex: codes in a FAISS binary index, exact or approximate, and conversions to and from existing FAISS indexes.

FAISS takes code lengths that are multiples of 8. Other codes are padded with zero bits, which never differ and so
never count. FAISS does not store ``n_bits`` or the space of the codes: keep both with the index. A
:class:`FaissIndex` knows them as long as it lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..._common.extras import require
from ..._common.validation import check_choice, check_integer
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
    from faiss import IndexBinary, IndexBinaryIDMap2, IndexBinaryIVF

faiss = require("faiss", extra="faiss")

Kind = Literal["flat", "ivf"]
# With fewer items, a scan of all of them takes some ten microseconds, and lists would hold few.
_MIN_ITEMS_FOR_LISTS = 10_000
# Lists are learned again when there are this many times as many items.
_GROWTH_UNTIL_NEW_LISTS = 4
_TRAINING_CODES_PER_LIST = 64  # FAISS asks for 39


class FaissIndex(HammingIndex):
    """Codes in a binary index of FAISS, with the answers of every other index here or, on request, approximate ones.

    FAISS leaves the order of equal distances open, so ``kind="flat"`` searches each query a second time, for all items
    up to its k-th distance, which are then ordered by id. One call at a time reaches FAISS; others wait.

    ``kind="ivf"`` is for millions of different codes: from 10,000 items on, similar codes are kept in one list, and a
    search looks only into the ``n_probes`` lists whose centers are nearest to the query. So it may miss near items,
    also in a radius, but what it finds has true distances, ordered by distance and then by id, and it returns k items
    if there are k. A search with ``among`` scans all items that it names and misses none. There are about as many lists
    as items in each; they are learned anew whenever there are four times as many items.

    Parameters
    ----------
    n_bits : int
    kind : {"flat", "ivf"}, default="flat"
        "flat" is exact; "ivf" is approximate and searches a small part of the codes.
    n_probes : int, default=None
        How many lists a search looks into, where ``kind`` is "ivf": more take more time and find more of the nearest
        items. By default, the square root of their number.

    Attributes
    ----------
    faiss_index : the index of FAISS, for example to write it to a file
    n_lists : int
        How many lists there are; 1 as long as all items are scanned.

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

    def __init__(self, n_bits: int, *, kind: Kind = "flat", n_probes: int | None = None) -> None:
        self.n_bits = check_integer(n_bits, "n_bits", low=1)
        self.kind = check_choice(kind, "kind", get_args(Kind))
        self.n_probes = None if n_probes is None else check_integer(n_probes, "n_probes", low=1)
        self.faiss_index: IndexBinary = to_faiss(self._codes(np.empty((0, n_bytes(self.n_bits)), np.uint8)))
        self._n_learned_from = 0
        self._lock = Lock()

    @classmethod
    def from_codes(cls, codes: BinaryCodes, ids: ArrayLike | None = None, **settings: Any) -> Self:
        """Return a new index of these codes; ``settings`` are further arguments of the class."""
        index = cls(codes.n_bits, **settings)
        index.add(codes, ids)
        return index

    @classmethod
    def from_collection(cls, collection: StoredItems, **settings: Any) -> Self:
        """Copy the codes of a collection, with their ids; FAISS keeps no metadata, which ``collection.get`` returns.

        Search it with ``collection.hasher.hamming_codes(collection.hasher.encode_queries(X))``.
        ``settings`` are further arguments of the class.
        """
        codes, ids, _ = items_of(collection)
        return cls.from_codes(codes, ids, **settings)

    @property
    def ids(self) -> np.ndarray:
        with self._lock:
            return np.sort(self._held()[1])

    def __len__(self) -> int:
        return int(self.faiss_index.ntotal)

    @property
    def n_lists(self) -> int:
        lists = _lists(self.faiss_index)
        return 1 if lists is None else int(lists.nlist)

    def _codes(self, packed: np.ndarray) -> BinaryCodes:
        return BinaryCodes(packed, self.n_bits)

    def _held(self) -> tuple[BinaryCodes, np.ndarray]:
        return from_faiss(self.faiss_index, self.n_bits)

    def _add(
        self, codes: BinaryCodes, ids: np.ndarray | None, metadata: Sequence[Mapping[str, Any]] | None
    ) -> np.ndarray:
        with self._lock:
            held = _ids(self.faiss_index)
            if ids is None:
                ids = next_ids(len(codes), held.max() if len(held) else None)
            present = np.isin(ids, held)
            if present.any():
                raise existing_id(ids[present][0])
            n_items = len(held) + len(ids)
            if self.kind == "ivf" and n_items >= max(
                _MIN_ITEMS_FOR_LISTS, _GROWTH_UNTIL_NEW_LISTS * self._n_learned_from
            ):
                old = self._held()
                packed = np.concatenate([old[0].packed, codes.packed])
                self.faiss_index = _in_lists(packed, np.concatenate([old[1], ids]))
                self._n_learned_from = n_items
            elif len(ids):
                self.faiss_index.add_with_ids(np.ascontiguousarray(codes.packed), ids)
        return ids

    def _remove(self, ids: np.ndarray) -> None:
        with self._lock:
            _positions(_ids(self.faiss_index), ids)
            self.faiss_index.remove_ids(ids)

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        with self._lock:
            codes, held = self._held()
            return self._codes(codes.packed[_positions(held, ids)])

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        with self._lock:
            searched = self._among(wanted.among)
            k = min(k, int(searched.ntotal))
            if k == 0 or not len(queries):
                return Neighbors(np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.int64))
            packed = np.ascontiguousarray(queries.codes.packed)
            lists = _lists(searched)
            return _nearest(searched, packed, k) if lists is None else self._probe(lists, packed, k)

    def _probe(self, lists: IndexBinaryIVF, packed: np.ndarray, k: int) -> Neighbors:
        """Return the nearest items in a part of the lists; in all of them for queries that need more."""
        lists.nprobe = self._n_probed(lists)
        distances, ids = lists.search(packed, k)
        short = np.flatnonzero(ids[:, -1] < 0)
        if len(short):
            lists.nprobe = lists.nlist
            distances[short], ids[short] = lists.search(packed[short], k)
        order = np.lexsort((ids, distances), axis=-1)
        return Neighbors(np.take_along_axis(distances, order, axis=1), np.take_along_axis(ids, order, axis=1))

    def _n_probed(self, lists: IndexBinaryIVF) -> int:
        wanted = round(np.sqrt(lists.nlist)) if self.n_probes is None else self.n_probes
        return min(int(lists.nlist), wanted)

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        with self._lock:
            searched = self._among(wanted.among)
            lists = _lists(searched)
            if lists is not None:
                lists.nprobe = self._n_probed(lists)
            return _ball(searched, np.ascontiguousarray(queries.codes.packed), int(radius))

    def _among(self, among: np.ndarray | None) -> IndexBinary:
        """Return an index of the items that may be returned: FAISS cannot filter its binary indexes."""
        if among is None:
            return self.faiss_index
        codes, ids = self._held()
        passing = np.isin(ids, among)
        return to_faiss(self._codes(codes.packed[passing]), ids[passing])


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
    """Return the codes and ids of a FAISS binary index that keeps its codes: flat, an id map of one, or lists (IVF).

    ``space_id`` is that of the codes that went in, if you know it. The codes of lists come by ascending id.
    """
    if index.d != 8 * n_bytes(n_bits):
        raise ValueError(f"The FAISS index has {index.d} bits, which is not {n_bits} padded to whole bytes.")
    ids, lists = _ids(index), _lists(index)
    # The caller's object may be the only owner of the memory, so it is kept alive to the end.
    inner = faiss.downcast_IndexBinary(index)
    if lists is not None:
        order = np.argsort(ids)
        packed = [_array(lists.invlists.get_codes(number), n * lists.code_size) for number, n in _sizes(lists)]
        joined = np.concatenate([*packed, np.empty(0, np.uint8)]).reshape(len(ids), n_bytes(n_bits))
        return BinaryCodes(joined[order], n_bits, space_id), ids[order]
    if hasattr(inner, "id_map"):
        inner = faiss.downcast_IndexBinary(inner.index)
    if not hasattr(inner, "xb"):
        raise ValueError(
            f"A {type(inner).__name__} does not keep its codes in order. Use a flat FAISS index, or an IndexBinaryIVF."
        )
    packed = faiss.vector_to_array(inner.xb).reshape(inner.ntotal, n_bytes(n_bits))
    return BinaryCodes(packed, n_bits, space_id), ids


def _lists(index: IndexBinary) -> IndexBinaryIVF | None:
    """Return the index itself if it keeps codes in lists."""
    inner = faiss.downcast_IndexBinary(index)
    return inner if isinstance(inner, faiss.IndexBinaryIVF) else None


def _ids(index: IndexBinary) -> np.ndarray:
    """Return the ids in the order in which the index keeps them."""
    lists = _lists(index)
    if lists is not None:
        parts = [_array(lists.invlists.get_ids(number), n) for number, n in _sizes(lists)]
        return np.concatenate([*parts, np.empty(0, np.int64)])
    inner = faiss.downcast_IndexBinary(index)
    ids = faiss.vector_to_array(inner.id_map) if hasattr(inner, "id_map") else np.arange(index.ntotal)
    return ids.astype(np.int64)


def _sizes(lists: IndexBinaryIVF) -> list[tuple[int, int]]:
    """Return the number of each list that is not empty, and how many items it has."""
    sizes = ((number, int(lists.invlists.list_size(number))) for number in range(lists.nlist))
    return [(number, n) for number, n in sizes if n]


def _array(pointer: Any, n: int) -> np.ndarray:
    return faiss.rev_swig_ptr(pointer, n).copy()


def _in_lists(packed: np.ndarray, ids: np.ndarray) -> IndexBinaryIVF:
    """Return a new index that keeps these codes in lists, about as many as there are items in each."""
    n_lists = 1 << round(np.log2(len(packed)) / 2)
    centers = faiss.IndexBinaryFlat(8 * packed.shape[1])
    lists = faiss.IndexBinaryIVF(centers, centers.d, n_lists)
    # Python would free the centers at the end of this function; from here on the lists own them.
    centers.this.disown()
    lists.own_fields = True
    step = max(1, len(packed) // (_TRAINING_CODES_PER_LIST * n_lists))
    lists.train(np.ascontiguousarray(packed[::step]))
    lists.add_with_ids(np.ascontiguousarray(packed), ids)
    return lists


def _nearest(index: IndexBinary, packed: np.ndarray, k: int) -> Neighbors:
    """Return the k nearest items of each query, by distance and then by id, from an index that scans all."""
    distances, ids = np.empty((len(packed), k), np.int32), np.empty((len(packed), k), np.int64)
    radii = index.search(packed, k)[0][:, -1]
    for radius in np.unique(radii):
        asking = np.flatnonzero(radii == radius)
        ball = _ball(index, packed[asking], int(radius))
        for number, query in enumerate(asking):
            distances[query], ids[query] = (part[:k] for part in ball.of(number))
    return Neighbors(distances, ids)


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
