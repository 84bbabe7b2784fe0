"""From vectors to a collection: codes, and the vectors themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike
from .._validation import check_labels
from .filling import check_new, fill_collection
from .hashing import learn_hasher
from .summary import ImportSummary

__all__ = ["import_vectors"]


def import_vectors(
    X: ArrayLike,
    collection: str | os.PathLike[str],
    labels: LabelsLike = None,
    *,
    n_bits: int | None = None,
    title: str | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    feature_names: Sequence[str] | None = None,
) -> ImportSummary:
    """Make a collection of vectors, completely or not at all.

    Parameters
    ----------
    X : array of shape (n_items, n_features)
    collection : path of the new collection
    labels : array of shape (n_items,), default=None
        As in :meth:`starshl.Collection.add`.
    n_bits : int, default=None
        Length of the codes; None is 32, or as many as the vectors allow.
    title : str, default=None
        The metadata field that says what an item is.
    ids, metadata, references : as in :meth:`starshl.Collection.add`
    feature_names : sequence of str, default=None
        Names of the columns of X, kept with the hasher, so that later tables may have them in any order.
    """
    start = time.perf_counter()
    check_new(collection)
    rows = np.asarray(X)
    learned = learn_hasher(rows, labels, n_bits)
    if feature_names is not None:
        learned.hasher.feature_names_in_ = np.array(feature_names, dtype=object)
    fill_collection(collection, learned, rows, labels, title=title, ids=ids, metadata=metadata, references=references)
    known = check_labels(labels, len(rows))
    return ImportSummary(
        collection=os.fspath(collection),
        kind="vectors",
        n_items=len(rows),
        n_labeled=int(known.labeled.sum()),
        classes=[str(name) for name in known.classes.tolist()],
        features="the vectors as they are",
        n_features=rows.shape[1],
        method=type(learned.hasher).__name__,
        n_bits=learned.hasher.n_bits_,
        labels=learned.labels,
        choice=learned.choice,
        seconds=round(time.perf_counter() - start, 3),
    )
