"""What all imports share: a new collection from vectors, additions to one that exists, and a summary of either."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..._common.files import refuse_existing
from ..._common.labels import Labels, LabelsLike
from ..._common.progress import row_progress, status
from ..._common.threads import tiles
from ..._common.validation import n_rows
from ..._common.words import counted
from ...codes.binary import BinaryCodes
from ...data.features.embedder import Embedder
from ...evaluation.benchmark import hold_out
from ...evaluation.hasher_choice import choose_hasher
from ...exceptions import InputError
from ...hashers.base import BaseHasher
from ...hashers.baselines.lsh import LSHash
from ...hashers.fitting import codes_of_vectors, name_features
from ...index.base import next_ids
from ..collection import Collection, atomic_collection
from ..duplicates import duplicates_of
from ..labels import item_labels
from ..vectors import VectorDtype
from .other_labels import OtherLabels

_FEWEST = 20  # items to learn from
_SHOWN = 5  # classes named in a sentence
_N_BITS = 32  # as binarize has them
_PORTION = 2000  # items that are stored at a time
_VECTOR_DTYPE: VectorDtype = "float16"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What was made: where, of what, with which labels and codes, and what was left out.

    ``labels`` and ``choice`` say in a sentence each what became of the labels, and which hasher was chosen and why.
    ``folders`` says which of ``n_folder_levels`` levels of folders the labels of pictures come from, and which folders
    are splits; it is empty if there was nothing to choose. ``features`` is the name of the embedder, and ``cut`` says
    how many texts are longer than it reads.
    """

    collection: str
    kind: str
    n_items: int
    n_labeled: int
    classes: list[str]
    features: str
    n_features: int
    method: str
    n_bits: int
    labels: str
    choice: str
    seconds: float
    skipped: tuple[Skipped, ...] = ()
    n_other_files: int = 0
    n_folder_levels: int = 0
    folders: str = ""
    cut: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return asdict(self) | {"skipped": [asdict(each) for each in self.skipped]}


@dataclass(frozen=True, slots=True)
class AdditionSummary:
    """What was added to a collection, how many items it has now, and what was left out.

    ``n_present`` items were there already, and were not stored again; ``n_relabeled`` of them got a new label.
    ``look_present`` says that all stored items look like some that were there, where it cannot be known for sure.
    ``n_folder_levels``, ``folders`` and ``cut`` are as in :class:`ImportSummary`.
    """

    collection: str
    kind: str
    n_stored: int
    n_items: int
    n_labeled: int
    skipped: tuple[Skipped, ...] = ()
    n_other_files: int = 0
    n_present: int = 0
    n_relabeled: int = 0
    look_present: bool = False
    n_folder_levels: int = 0
    folders: str = ""
    cut: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return asdict(self) | {"skipped": [asdict(each) for each in self.skipped]}


def check_new(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that exists, before any work is done."""
    refuse_existing(folder, "Choose another folder, or remove that one first.")


def build_collection(
    folder: str | os.PathLike[str],
    kind: str,
    X: np.ndarray,
    labels: LabelsLike,
    *,
    start: float,
    features: str,
    n_bits: int | None,
    feature_names: Sequence[str] | None = None,
    embedder: Embedder | None = None,
    title: str | None = None,
    fields: Mapping[str, type | str] | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
    entry: tuple[str, str] | None = None,
    progress: bool = False,
) -> ImportSummary:
    """Learn a hasher from vectors and write a collection of all items, completely or not at all.

    ``start`` is when the import began, and ``features`` says in words what the vectors are. ``entry`` is the name of a
    journal and a text to keep in it; ``progress`` shows the steps. The other options are those of ``Collection.create``
    and ``add``.
    """
    known = item_labels(labels, len(X))
    with status("learning codes", shown=progress):
        learned = _learn_hasher(X, known, n_bits)
        name_features(learned.hasher, feature_names)
        codes = codes_of_vectors(learned.hasher, X, learned.taught_by)
    columns = {"ids": ids, "metadata": metadata, "references": references, "previews": previews}
    with (
        row_progress("storing items", len(X), shown=progress) as report,
        atomic_collection(
            folder, learned.hasher, vectors=_VECTOR_DTYPE, fields=fields, embedder=embedder, title=title
        ) as made,
    ):
        for portion in tiles(len(X), _PORTION):
            part: dict[str, Any] = {name: None if all_ is None else all_[portion] for name, all_ in columns.items()}  # type: ignore[index]
            made.add(
                X[portion],
                codes=codes[portion],
                model_digest=made.model_digest,
                labels=known.take(portion),
                **part,
            )
            report(portion.stop - portion.start)
        if entry is not None:
            made.note(*entry)
    return ImportSummary(
        collection=os.fspath(folder),
        kind=kind,
        n_items=len(X),
        n_labeled=int(known.labeled.sum()),
        classes=[str(name) for name in known.classes.tolist()],
        features=features,
        n_features=X.shape[1],
        method=type(learned.hasher).__name__,
        n_bits=learned.hasher.n_bits_,
        labels=learned.labels,
        choice=learned.choice,
        seconds=round(time.perf_counter() - start, 3),
    )


@dataclass(frozen=True, slots=True)
class _LearnedHasher:
    """A fitted hasher, the labels that taught it, and in plain words what became of labels and how it was chosen."""

    hasher: BaseHasher
    taught_by: Labels | None
    labels: str
    choice: str


def _learn_hasher(X: np.ndarray, labels: Labels, n_bits: int | None) -> _LearnedHasher:
    """Fit the hasher that :func:`starshl.binarize` would choose; without two classes, labels teach it nothing."""
    taught_by = labels if len(labels.classes) > 1 else None
    sentence = _about_labels(labels)
    if len(X) < _FEWEST:
        # A single row is given twice: hashers are fitted on two rows or more.
        hasher: BaseHasher = LSHash(n_bits or _N_BITS, random_state=0).fit(X if len(X) > 1 else np.repeat(X, 2, axis=0))
        few = f"{counted(len(X), 'item')} {'is' if len(X) == 1 else 'are'} too few to learn from"
        reason = f"LSHash was chosen, because {few}; {_FEWEST} would be enough."
        return _LearnedHasher(hasher, None, sentence, reason)
    choice = choose_hasher(hold_out(X, taught_by, None, 0), None, n_bits)
    return _LearnedHasher(clone(choice.hasher).fit(X, taught_by), taught_by, sentence, choice.reason)


def _about_labels(labels: Labels) -> str:
    n_labeled, classes = int(labels.labeled.sum()), [str(name) for name in labels.classes.tolist()]
    if not classes:
        return "No item has a label: codes were learned without labels (the unsupervised mode)."
    shown = ", ".join(classes[:_SHOWN]) + (", ..." if len(classes) > _SHOWN else "")
    of = "all" if n_labeled == labels.n_rows else f"{n_labeled:,} of {labels.n_rows:,}"
    if len(classes) == 1:
        return (
            f"Labels: {of} items are {classes[0]!r}. One class alone teaches nothing, so codes were learned without "
            "labels (the unsupervised mode); the labels are stored."
        )
    return f"Labels: {of} items have one of {len(classes)} classes ({shown})."


def add_items(
    collection: Collection,
    X: Any,
    *,
    labels: LabelsLike = None,
    codes: BinaryCodes | None = None,
    ids: ArrayLike | None = None,
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    previews: Sequence[bytes | None] | None = None,
    replace: bool = False,
    allow_duplicates: bool = False,
    update_labels: bool = False,
    keep_labels: bool = False,
    trust_match: bool = False,
) -> AdditionSummary:
    """Store items; without ids, only those of which the collection has no duplicate, unless these are allowed.

    Row i then gets the id ``first + i``, where ``first`` is one more than the highest id; rows that are there already
    leave gaps. If one of these arrives with another label than it has, nothing is stored, unless ``update_labels`` says
    to take the new label or ``keep_labels`` to keep the old one.

    ``codes`` are those of the vectors by the hasher of the collection, if they are known. ``replace`` replaces items
    whose ids exist. If neither vectors nor previews are kept, items that look the same may differ, and are stored, too,
    unless the caller says with ``trust_match`` or with what becomes of labels that they do not.
    """
    _check_fitting(ids, allow_duplicates, update_labels, keep_labels)
    n_items = n_rows(X)
    known = item_labels(labels, n_items)
    columns: dict[str, Any] = {"metadata": metadata, "references": references, "previews": previews}
    chosen, look_present, others = np.arange(n_items), False, None
    if ids is None and not allow_duplicates:
        with collection.reading() as (state, store):
            same = duplicates_of(state, store, X, codes, **columns)
            last_id = state.index.last_id
        found = np.array([bool(each) for each in same], np.bool_)
        if not keep_labels:
            others = OtherLabels(collection, known, same)
            if update_labels:
                others.check()
            else:
                others.refuse()
        trust_match |= update_labels or keep_labels
        if trust_match or collection.vector_dtype is not None or previews is not None:
            chosen = np.flatnonzero(~found)
        else:
            look_present = bool(found.all())
        ids = next_ids(n_items, last_id)[chosen]
        replace = False
    given: dict[str, Any] = {
        name: None if column is None else [column[row] for row in chosen] for name, column in columns.items()
    }
    given |= {"ids": ids, "labels": known.take(chosen)}
    given |= {} if codes is None else {"codes": codes[chosen], "model_digest": collection.model_digest}
    if len(chosen):
        rows = X if len(chosen) == n_items else _rows(X, chosen)
        rows = None if codes is not None and collection.vector_dtype is None else rows
        put = collection.upsert if replace and ids is not None else collection.add
        put(rows, **given)
    if others is not None:
        # Last, because additions may be refused. Whoever is stopped before it finishes the work with the same call.
        others.store()
    return AdditionSummary(
        collection=os.fspath(collection.folder),
        kind=collection.kind,
        n_stored=len(chosen),
        n_items=len(collection),
        n_labeled=int(known.labeled[chosen].sum()),
        n_present=n_items - len(chosen),
        n_relabeled=0 if others is None else len(others),
        look_present=look_present,
    )


def _check_fitting(ids: ArrayLike | None, allow_duplicates: bool, update_labels: bool, keep_labels: bool) -> None:
    """Refuse to say what becomes of labels twice, or where items are not compared."""
    if update_labels and keep_labels:
        raise InputError("{update_labels} and {keep_labels} contradict each other", advice="Leave one of them out.")
    if (update_labels or keep_labels) and (ids is not None or allow_duplicates):
        other = "{allow_duplicates}" if ids is None else "{ids}"
        raise InputError(
            "{parameter} is about items that are there already, and with " + other + " items are not compared",
            advice="Leave one of them out.",
            parameter="update_labels" if update_labels else "keep_labels",
        )


def _rows(X: Any, chosen: np.ndarray) -> Any:
    return X[chosen] if hasattr(X, "shape") else [X[row] for row in chosen]


def embedder_for(collection: Collection, kind: str) -> Embedder:
    """Return the embedder of a collection if it takes this kind, or say what the collection takes."""
    embedder = collection.embedder
    if embedder is None or kind not in embedder.takes:
        takes = "vectors" if embedder is None else " and ".join(embedder.takes)
        raise ValueError(f"The items of this collection are {collection.kind}; it takes {takes}, not {kind}.")
    return embedder
