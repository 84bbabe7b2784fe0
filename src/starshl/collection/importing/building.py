"""A new collection, filled in portions before anyone can see it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..._common.files import refuse_existing
from ..._common.labels import LabelsLike, as_label_array, check_labels
from ..._common.threads import tiles
from ..._common.words import counted
from ...codes.binary import BinaryCodes
from ...data.features.embedder import Embedder
from ...evaluation.benchmark import hold_out
from ...evaluation.hasher_choice import choose_hasher
from ...hashers.base import BaseHasher
from ...hashers.baselines.lsh import LSHash
from ...hashers.fitting import codes_of_vectors
from ..collection import Collection, atomic_collection

_FEWEST = 20  # items to learn from
_SHOWN = 5  # classes named in a sentence
_N_BITS = 32  # as binarize has them
_PORTION = 2000  # items that are stored at a time
_KEPT = "float16"


@dataclass(frozen=True, slots=True)
class LearnedHasher:
    """A fitted hasher, the labels that taught it, and in plain words what became of labels and how it was chosen."""

    hasher: BaseHasher
    taught_by: LabelsLike
    labels: str
    choice: str


def learn_hasher(X: np.ndarray, y: LabelsLike, n_bits: int | None = None) -> LearnedHasher:
    """Fit the hasher that :func:`starshl.binarize` would choose; without two classes, labels teach it nothing."""
    known = check_labels(y, len(X))
    n_labeled, classes = int(known.labeled.sum()), [str(name) for name in known.classes.tolist()]
    taught_by = y if len(classes) > 1 else None
    sentence = _about_labels(len(X), n_labeled, classes)
    if len(X) < _FEWEST:
        # A single row is given twice: hashers are fitted on two rows or more.
        hasher: BaseHasher = LSHash(n_bits or _N_BITS, random_state=0).fit(X if len(X) > 1 else np.repeat(X, 2, axis=0))
        few = f"{counted(len(X), 'item')} {'is' if len(X) == 1 else 'are'} too few to learn from"
        reason = f"LSHash was chosen, because {few}; {_FEWEST} would be enough."
        return LearnedHasher(hasher, None, sentence, reason)
    choice = choose_hasher(hold_out(X, taught_by, None, 0), None, n_bits)
    return LearnedHasher(clone(choice.hasher).fit(X, taught_by), taught_by, sentence, choice.reason)


def _about_labels(n_items: int, n_labeled: int, classes: list[str]) -> str:
    if not classes:
        return "No item has a label: codes were learned without labels (the unsupervised mode)."
    shown = ", ".join(classes[:_SHOWN]) + (", ..." if len(classes) > _SHOWN else "")
    of = "all" if n_labeled == n_items else f"{n_labeled:,} of {n_items:,}"
    if len(classes) == 1:
        return (
            f"Labels: {of} items are {classes[0]!r}. One class alone teaches nothing, so codes were learned without "
            "labels (the unsupervised mode); the labels are stored."
        )
    return f"Labels: {of} items have one of {len(classes)} classes ({shown})."


def check_new(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that exists, before any work is done."""
    refuse_existing(folder, "Choose another folder, or remove that one first.")


def fill_collection(
    folder: str | os.PathLike[str],
    learned: LearnedHasher,
    X: np.ndarray,
    labels: LabelsLike,
    *,
    embedder: Embedder | None = None,
    title: str | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
) -> None:
    """Write a collection of all items, completely or not at all."""
    codes = codes_of_vectors(learned.hasher, X, learned.taught_by)
    columns = {"ids": ids, "metadata": metadata, "references": references, "previews": previews}
    given = None if labels is None else as_label_array(labels)
    with atomic_collection(folder, learned.hasher, vectors=_KEPT, embedder=embedder, title=title) as collection:
        for portion in tiles(len(X), _PORTION):
            part: dict[str, Any] = {name: None if all_ is None else all_[portion] for name, all_ in columns.items()}  # type: ignore[index]
            collection.add(
                X[portion],
                codes=codes[portion],
                model_digest=collection.model_digest,
                labels=None if given is None else given[portion],
                **part,
            )


@dataclass(frozen=True, slots=True)
class Added:
    """How many items were stored, how many of them with a label, and how many were there already and were not.

    ``look_present`` says that all stored items look like some that were there, where it cannot be known for sure.
    """

    n_stored: int
    n_labeled: int
    n_present: int = 0
    look_present: bool = False


def add_new(
    collection: Collection,
    X: Any,
    *,
    labels: LabelsLike = None,
    codes: BinaryCodes | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
    again: bool = False,
    sure: bool = False,
) -> Added:
    """Store items, with the next free ids, of which the collection has no duplicates; ``again``, all of them.

    If neither vectors nor previews are kept, items that look the same may differ. Unless the caller is ``sure`` that
    they do not, these are stored, too.
    """
    columns: dict[str, Any] = {"metadata": metadata, "references": references, "previews": previews}
    known = None if labels is None else as_label_array(labels)
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    is_new = np.ones(n_items, np.bool_)
    look_present = False
    if not again:
        same = collection.find_duplicates(X, codes=codes, **columns)
        found = np.array([item is not None for item in same], np.bool_)
        if sure or collection.vector_dtype is not None or previews is not None:
            is_new = ~found
        else:
            look_present = bool(found.all())
    chosen = np.flatnonzero(is_new)
    given: dict[str, Any] = {
        name: None if column is None else [column[row] for row in chosen] for name, column in columns.items()
    }
    given["labels"] = None if known is None else known[chosen]
    if codes is not None:
        given |= {"codes": codes[chosen], "model_digest": collection.model_digest}
    if len(chosen):
        wanted = X if len(chosen) == n_items else _rows(X, chosen)
        collection.add(None if codes is not None and collection.vector_dtype is None else wanted, **given)
    n_labeled = int(check_labels(given["labels"], len(chosen)).labeled.sum()) if len(chosen) else 0
    return Added(len(chosen), n_labeled, n_items - len(chosen), look_present)


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return X[chosen] if hasattr(X, "shape") else [X[row] for row in chosen]


def embedder_for(collection: Collection, kind: str) -> Embedder:
    """Return the embedder of a collection of this kind, or say what the collection takes."""
    embedder = collection.embedder
    if collection.kind != kind or embedder is None:
        takes = "vectors" if embedder is None else collection.kind
        raise ValueError(f"The items of this collection are {collection.kind}; it takes {takes}, not {kind}.")
    return embedder
