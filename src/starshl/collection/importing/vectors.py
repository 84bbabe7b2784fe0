"""From vectors to a collection: codes, and the vectors themselves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..._common.files import write_atomically
from ..._common.labels import LabelsLike
from ..._common.validation import Seed
from ..._common.warn import warn_caller
from ...data.features.embedder import Embedder, Given, as_embedder, make_embedder
from ...evaluation.benchmark import HeldOut, hold_out
from ...evaluation.comparison import Comparison, StoredSizes, compare_choice, compare_embedders
from ...evaluation.comparison_page import find_titles, guess_picture_shape, write_page
from ...evaluation.hasher_choice import choose_hasher
from ...exceptions import MissingExtraError
from ...hashers.base import BaseHasher
from ...hashers.fitting import codes_of_vectors, name_features
from ...index.base import check_ids
from ...index.metadata import check_metadata
from ..collection import atomic_collection
from ..embedding import note_of_stored, stored_text
from ..items import reference_texts
from ..labels import item_labels
from .building import ImportSummary, build_collection, check_new


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
    progress: bool = False,
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
    progress : bool, default=False
        Show the steps on standard error.
    """
    start = time.perf_counter()
    check_new(collection)
    rows = np.asarray(X)
    return build_collection(
        collection,
        "vectors",
        rows,
        labels,
        start=start,
        features="the vectors as they are",
        n_bits=n_bits,
        feature_names=feature_names,
        title=title,
        ids=ids,
        metadata=metadata,
        references=references,
        progress=progress,
    )


def binarize(
    X: ArrayLike | Sequence[Any],
    collection: str | os.PathLike[str],
    labels: LabelsLike = None,
    *,
    embedder: str | Given = None,
    hasher: BaseHasher | None = None,
    n_bits: int | Sequence[int] | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    n_queries: int | None = None,
    random_state: Seed = 0,
    feature_names: Sequence[str] | None = None,
) -> Comparison:
    """Turn vectors into a searchable collection and compare its codes with the vectors themselves.

    The hasher is compared on held-out queries with float search and with the plain binarizers of the catalog at equal
    length (:func:`compare`), then fitted on all rows, and the collection of all rows is written, completely or not at
    all.

    Parameters
    ----------
    X : array of shape (n_items, n_features), or list of texts
    collection : path of the new collection
        It also holds the comparison, as ``comparison.html``, ``comparison.md`` and ``comparison.json``.
    labels : array of shape (n_items,), default=None
        -1, NaN, None or empty text where there is none.
    embedder : str, Embedder, function or transformer, default=None
        What makes vectors of texts: a name of :func:`starshl.data.features.make_embedder`, such as "minilm", or your
        own. The collection keeps it, and each text as ``text`` in its metadata; vectors by ``tfidf`` and ``minilm`` are
        compared with its vectors.
    hasher : BaseHasher, default=None
        Not fitted. None is HybridHasher if a row has a label. Without labels it is HybridHasher with clusters or ITQ,
        whichever measures better on held-out rows; ``choice`` of the result says why.
    n_bits : int or sequence of int, default=None
        Length of the codes of all methods compared. With several lengths, all are compared, and the collection gets the
        shortest one that is good enough; ``length_choice`` says why. None is the length of the given hasher, or 32, or
        fewer if the rows do not allow that many.
    ids, metadata, references : as in :meth:`starshl.Collection.add`
    n_queries : int, default=None
        Rows to hold out: a tenth, at most 1,000, by default.
    random_state : int, default=0
        Which rows are held out.
    feature_names : sequence of str, default=None
        Names of the columns of X, kept with the hasher, so that later tables may have them in any order.
    """
    check_new(collection)
    # Before fitting, which may take hours.
    n_items = len(X) if embedder is not None else np.shape(X)[0]  # type: ignore[arg-type]
    if ids is not None:
        ids = check_ids(ids, n_items)
    check_metadata(metadata, n_items)
    reference_texts(references, n_items)
    known = None if labels is None else item_labels(labels, n_items)
    texts, made_by = None, None
    if embedder is not None:
        texts, made_by = cast(Sequence[str], X), as_embedder(embedder, "texts")
        X = made_by.fit_embed(texts).astype(np.float32)
        note = note_of_stored(made_by, texts)
        if note:
            warn_caller(note)
        entries = metadata or [{}] * n_items
        metadata = [{"text": stored_text(text), **entry} for text, entry in zip(texts, entries, strict=True)]
    split = hold_out(X, known, n_queries, random_state)
    choice = choose_hasher(split, hasher, n_bits)
    comparison = compare_choice(split, choice)
    if texts is not None and made_by is not None:
        by_embedder, left_out = compare_embedders(split, _by_embedder(made_by, texts, split))
        comparison = replace(comparison, embedders=by_embedder, embedders_left_out=left_out)
    is_settled = len(choice.lengths) == 1
    chosen = choice.hasher if is_settled else choice.hasher.at_length(comparison.n_bits)
    fitted = clone(chosen).fit(X, known)
    name_features(fitted, feature_names)
    codes = codes_of_vectors(fitted, X, known)
    title = None if made_by is None else "text"
    with atomic_collection(collection, fitted, embedder=made_by, title=title) as made:
        # The codes of labels follow from the labels, which are stored.
        made.add(
            codes=codes,
            model_digest=made.model_digest,
            labels=known,
            ids=ids,
            metadata=metadata,
            references=references,
        )
        comparison = replace(comparison, stored=_sizes(made.folder))
        write_atomically(made.folder / "comparison.md", comparison.page().encode())
        write_atomically(made.folder / "comparison.json", json.dumps(comparison.as_dict(), indent=1).encode())
        titles: Sequence[str] | None = texts
        if texts is None and not guess_picture_shape(split.X):
            titles = find_titles(metadata, references)
        write_page(made.folder / "comparison.html", comparison, split.X, titles=titles)
    return comparison


def _by_embedder(embedder: Embedder, texts: Sequence[str], split: HeldOut) -> dict[str, np.ndarray]:
    """Return vectors of all texts by an embedder, by TF-IDF of the items, and by MiniLM if it is installed."""
    vectors = {embedder.name: split.X}
    for name in ("tfidf", "minilm"):
        with suppress(MissingExtraError):
            if name not in vectors:
                items = [texts[row] for row in split.base.tolist()]
                vectors[name] = make_embedder(name).fit(items).embed(texts).astype(np.float32)
    return vectors


def _sizes(folder: Path) -> StoredSizes:
    """Return the bytes of a collection that is complete but for its pages."""
    # The log of SQLite is empty, and leaves when the collection is closed.
    files = [path for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))]
    sizes = {path.name: path.stat().st_size for path in files}
    return StoredSizes(sum(sizes.values()), sum(size for name, size in sizes.items() if name.startswith("hasher-")))
