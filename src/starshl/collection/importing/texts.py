"""From texts to a collection: vectors, codes and titles."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._common.labels import LabelsLike
from ...data.features.embedder import Given, as_embedder
from ...index.metadata import check_metadata
from ..collection import Collection
from ..embedding import note_of_stored, stored_text
from .building import AdditionSummary, ImportSummary, add_items, build_collection, check_new, embedder_for

_SAME = 1e-2  # of the length of a vector: more than float16 and int8 lose


def import_texts(
    texts: Sequence[str],
    collection: str | os.PathLike[str],
    labels: LabelsLike = None,
    *,
    embedder: str | Given = "tfidf",
    n_bits: int | None = None,
    field: str = "text",
    title: str | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ImportSummary:
    """Make a collection of texts, completely or not at all.

    Parameters
    ----------
    texts : list of str
    collection : path of the new collection
    labels : array of shape (n_texts,), default=None
        As in :meth:`starshl.Collection.add`.
    embedder : str, Embedder, function or transformer, default="tfidf"
        What makes vectors of texts: a name of :func:`starshl.data.features.make_embedder`, such as "minilm", or your
        own. If it learns, it learns from these texts.
    n_bits : int, default=None
        Length of the codes; None is 32, or as many as the vectors allow.
    field : str, default="text"
        The metadata field that holds the text itself.
    title : str, default=None
        The metadata field that says what an item is; None is ``field``.
    ids, metadata, references : as in :meth:`starshl.Collection.add`
    n_jobs : int, default=None
        Number of threads that embed; None means one, -1 means all. The collection does not depend on it.
    progress : bool, default=False
        Show a bar on standard error.
    """
    start = time.perf_counter()
    check_new(collection)
    if not len(texts):
        raise ValueError("There are no texts. Give at least one.")
    described = check_metadata(metadata, len(texts))
    made = as_embedder(embedder, "texts")
    X = made.fit_embed(texts, n_jobs=n_jobs, progress=progress)
    stored = [{**entry, field: stored_text(text)} for entry, text in zip(described, texts, strict=True)]
    summary = build_collection(
        collection,
        "texts",
        X,
        labels,
        start=start,
        features=made.name,
        n_bits=n_bits,
        embedder=made,
        title=title or field,
        ids=ids,
        metadata=stored,
        references=references,
        progress=progress,
    )
    return dataclasses.replace(summary, cut=note_of_stored(made, texts))


def add_texts(
    collection: Collection,
    texts: Sequence[str],
    labels: LabelsLike = None,
    *,
    field: str | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    replace: bool = False,
    allow_duplicates: bool = False,
    update_labels: bool = False,
    keep_labels: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> AdditionSummary:
    """Add texts to a collection of texts, all of them or none.

    Texts without ids that are there already, with the same metadata and reference, are not stored again. If one of them
    arrives with another label than it has, nothing is stored, unless you say what to do. Row i gets the id
    ``first + i``, where ``first`` is one more than the highest id; rows that are there already leave gaps.

    Parameters
    ----------
    collection : Collection, open for writing
    texts : list of str
    labels, ids, metadata, references : as in :meth:`starshl.Collection.add`
    field : str, default=None
        The metadata field that holds the text itself; None is that of the items that are there.
    replace : bool, default=False
        Replace items whose ids exist.
    allow_duplicates : bool, default=False
        Store texts that are there already once more.
    update_labels : bool, default=False
        Give texts that are there already the label that they arrive with.
    keep_labels : bool, default=False
        Leave texts that are there already the label that they have.
    n_jobs, progress : as in :func:`import_texts`
    """
    embedder = embedder_for(collection, "texts")
    if not len(texts):
        raise ValueError("There are no texts. Give at least one.")
    rows = metadata or [{} for _ in texts]
    name = field or text_field(collection)
    stored = rows if name is None else [{**row, name: stored_text(text)} for row, text in zip(rows, texts, strict=True)]
    added = add_items(
        collection,
        embedder.embed(texts, n_jobs=n_jobs, progress=progress),
        labels=labels,
        ids=ids,
        metadata=stored,
        references=references,
        replace=replace,
        allow_duplicates=allow_duplicates,
        update_labels=update_labels,
        keep_labels=keep_labels,
        trust_match=name is not None,
    )
    return dataclasses.replace(added, cut=note_of_stored(embedder, texts))


def text_field(collection: Collection) -> str | None:
    """Return the metadata field that holds the texts of a collection: the one whose words give the kept vectors.

    If that cannot be seen, it is the field of titles, if there is one.
    """
    first = collection.ids[:1]
    if collection.vector_dtype is None or not len(first):
        return collection.title
    (vector,), (item,) = collection.vectors(first), collection.get(first)
    texts = {name: value for name, value in item.metadata.items() if isinstance(value, str)}
    # The title comes first: if several fields hold the same text, it is the one to use.
    for name in sorted(texts, key=lambda name: name != collection.title):
        difference = np.linalg.norm(collection.embed([texts[name]])[0] - vector)
        if difference <= _SAME * np.linalg.norm(vector):
            return name
    return collection.title
