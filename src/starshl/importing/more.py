"""More pictures or texts for a collection that exists, described by its own extractor."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike
from .._validation import check_labels
from ..collection import Collection
from ..features import Extractor
from .adding import Added, add_new
from .folders import collect_pictures
from .reading import labels_of, read_pictures
from .summary import AdditionSummary

__all__ = ["add_pictures", "add_texts", "text_field"]

_SAME = 1e-2  # of the length of a vector: more than float16 and int8 lose


def add_pictures(
    collection: Collection,
    pictures: Sequence[str | os.PathLike[str]],
    *,
    labels: bool = True,
    again: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> AdditionSummary:
    """Add pictures to a collection of pictures, all that can be read or none.

    Pictures that are there already, with the same path in their folder and the same preview, are not stored again.

    Parameters
    ----------
    collection : Collection, open for writing
    pictures : list of paths
        Files, and folders as in :func:`import_pictures`.
    labels : bool, default=True
        Whether the name of a subfolder is the label of the pictures in it.
    again : bool, default=False
        Store pictures that are there already once more.
    n_jobs, progress : as in :func:`import_pictures`
    """
    extractor = _extractor(collection, "pictures")
    files, n_others = collect_pictures(pictures)
    rows, previews, kept, skipped = read_pictures(files, extractor.steps, n_jobs, progress=progress)
    known = labels_of(kept) if labels else None
    references = [file.reference for file in kept]
    added = add_new(collection, rows, labels=known, references=references, previews=previews, again=again)
    return AdditionSummary(
        collection=os.fspath(collection.folder),
        kind="pictures",
        n_stored=added.n_stored,
        n_items=len(collection),
        n_labeled=added.n_labeled,
        skipped=tuple(skipped),
        n_other_files=n_others,
        n_present=added.n_present,
    )


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
    again: bool = False,
) -> AdditionSummary:
    """Add texts to a collection of texts, all of them or none.

    Texts without ids that are there already, with the same metadata and reference, are not stored again.

    Parameters
    ----------
    collection : Collection, open for writing
    texts : list of str
    labels, ids, metadata, references : as in :meth:`starshl.Collection.add`
    field : str, default=None
        The metadata field that holds the text itself; None is that of the items that are there.
    replace : bool, default=False
        Replace items whose ids exist.
    again : bool, default=False
        Store texts that are there already once more.
    """
    extractor = _extractor(collection, "texts")
    if not len(texts):
        raise ValueError("There are no texts. Give at least one.")
    rows = metadata or [{} for _ in texts]
    name = field or text_field(collection)
    stored = rows if name is None else [{**row, name: text} for row, text in zip(rows, texts, strict=True)]
    given: dict[str, Any] = {"labels": labels, "metadata": stored, "references": references}
    vectors = extractor.transform(texts)
    if ids is None:
        added = add_new(collection, vectors, **given, again=again, sure=name is not None)
    else:
        put = collection.upsert if replace else collection.add
        put(vectors, ids=ids, **given)
        added = Added(len(texts), int(check_labels(labels, len(texts)).labeled.sum()))
    return AdditionSummary(
        collection=os.fspath(collection.folder),
        kind="texts",
        n_stored=added.n_stored,
        n_items=len(collection),
        n_labeled=added.n_labeled,
        n_present=added.n_present,
    )


def text_field(collection: Collection) -> str | None:
    """Return the metadata field that holds the texts of a collection: the one whose words give the kept vectors.

    If that cannot be seen, it is the field of titles, if there is one.
    """
    first = collection.ids[:1]
    if collection.keeps is None or not len(first):
        return collection.title
    (vector,), (item,) = collection.vectors(first), collection.get(first)
    texts = {name: value for name, value in item.metadata.items() if isinstance(value, str)}
    # The title comes first: if several fields hold the same text, it is the one to use.
    for name in sorted(texts, key=lambda name: name != collection.title):
        difference = np.linalg.norm(collection.extract([texts[name]])[0] - vector)
        if difference <= _SAME * np.linalg.norm(vector):
            return name
    return collection.title


def _extractor(collection: Collection, kind: str) -> Extractor:
    """Return the extractor of a collection of this kind, or say what the collection takes."""
    extractor = collection.extractor
    if collection.kind != kind or extractor is None:
        takes = "vectors" if extractor is None else collection.kind
        raise ValueError(f"The items of this collection are {collection.kind}; it takes {takes}, not {kind}.")
    return extractor
