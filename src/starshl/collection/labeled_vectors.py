"""The kept vectors of a collection as a hasher takes them, with the labels of the items, to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .filters import labels_by_id

if TYPE_CHECKING:
    from .collection import Collection


def labeled_vectors(collection: Collection, consequence: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, kept vectors and labels of all items, None where there is no label.

    ``consequence`` says what cannot be done if the collection keeps no vectors.
    """
    if collection.vector_dtype is None:
        raise ValueError(
            f"This collection keeps no vectors, so {consequence}. Make a collection that keeps them: "
            "Collection.create(..., vectors='float16'), or `starshl index build --keep float16` in the shell."
        )
    with collection.reading() as (state, store):
        ids, known = np.sort(state.index.ids), labels_by_id(state, store)
        labels = np.array([known.get(item) for item in ids.tolist()], object)
        return ids, state.vectors_of(store, ids.tolist()), labels
