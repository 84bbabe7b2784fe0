"""Codes to and from FAISS binary indexes.

FAISS takes lengths that are multiples of 8. Shorter codes are padded with zero bits, which never differ and
so never count; ``n_bits`` has to travel beside the index, for FAISS does not keep it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._extras import require
from ..codes import BinaryCodes
from ..index.base import check_ids
from ._database import StoredItems, items_of

faiss = require("faiss", extra="faiss")

__all__ = ["collection_to_faiss", "from_faiss", "to_faiss"]


def to_faiss(codes: BinaryCodes, ids=None):
    """Return a ``faiss.IndexBinaryIDMap2`` of an ``IndexBinaryFlat`` with these codes.

    Queries are ``codes.packed`` as well. Note that ``range_search`` of FAISS finds distances *below* its
    radius, and that FAISS orders equal distances as it likes.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> codes = BinaryCodes.from_signs(np.array([[1, 1, 1], [-1, 1, 1], [-1, -1, -1]]))
    >>> index = to_faiss(codes, ids=[10, 20, 30])
    >>> index.search(codes.packed[:1], 3)[0].tolist()
    [[0, 1, 3]]
    """
    ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
    flat = faiss.IndexBinaryFlat(8 * codes.packed.shape[1])
    index = faiss.IndexBinaryIDMap2(flat)
    # Python would free the flat index at the end of this function; from here on the id map owns it.
    flat.this.disown()
    index.own_fields = True
    index.add_with_ids(np.ascontiguousarray(codes.packed), ids)
    return index


def collection_to_faiss(collection: StoredItems) -> tuple[Any, dict[int, dict[str, Any]]]:
    """Return an index as :func:`to_faiss` makes it, and the metadata by id, for FAISS keeps none.

    An item's reference is in its metadata as ``reference``, unless they have an entry of that name.
    """
    codes, ids, metadata = items_of(collection)
    return to_faiss(codes, ids), dict(zip(ids.tolist(), metadata, strict=True))


def from_faiss(index, n_bits: int) -> tuple[BinaryCodes, np.ndarray]:
    """Return the codes and ids of a FAISS binary index that keeps its codes (flat, or an id map of one)."""
    if index.d != 8 * -(-n_bits // 8):
        raise ValueError(f"The FAISS index has {index.d} bits, which is not {n_bits} padded to whole bytes.")
    # The caller's object may be the only owner of the memory, so its name is kept alive to the end.
    inner = faiss.downcast_IndexBinary(index)
    ids = np.arange(inner.ntotal)
    if hasattr(inner, "id_map"):
        ids = faiss.vector_to_array(inner.id_map)
        inner = faiss.downcast_IndexBinary(inner.index)
    if not hasattr(inner, "xb"):
        raise ValueError(f"A {type(inner).__name__} keeps no codes in order; make it a flat one.")
    packed = faiss.vector_to_array(inner.xb).reshape(inner.ntotal, -1)
    return BinaryCodes(packed, n_bits), ids.astype(np.int64)
