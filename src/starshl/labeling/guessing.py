"""Guess the labels of all items that have none: from a few given labels, or by the model of the collection."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..collection.collection import Collection
from ..collection.guesses import Guesses
from ..collection.labels import label_text
from ..hashers.base import BaseHasher
from .events import JOURNAL, read_events, rejected_guesses
from .items import Progress
from .lesson import Lesson

_BATCH = 4096  # items between two reports of progress
By = Literal["lesson", "hasher"]


def guess_labels(
    collection: Collection, *, by: By | None = None, n_jobs: int | None = None, progress: Progress | None = None
) -> Guesses:
    """Guess the labels of all items that have none, keep the guesses in the collection, and return them.

    Afterward, ``collection.guesses()`` returns them, items and hits have them, and searches can ask for them. The
    collection must keep vectors.

    Parameters
    ----------
    collection : Collection
        Open for writing if guesses are to survive the process.
    by : {"lesson", "hasher"}, default=None
        From the labels of a few items, as a :class:`Lesson` does, or by the model of the collection. None takes the
        model if it was fitted to all classes that items have, gives probabilities, and nobody has taught the
        collection yet.
    n_jobs : int, default=None
        Threads for finding neighbors.
    progress : callable (stage, done, total), default=None
        Called with how far along it is.
    """
    chosen = usual_source(collection) if by is None else by
    if chosen not in ("lesson", "hasher"):
        raise ValueError(f"by is {by!r}; labels are guessed by 'lesson' or by 'hasher'.")
    if chosen == "hasher":
        _by_hasher(collection, progress or _silent)
    else:
        if len(collection.label_counts()) < 2:
            raise ValueError(
                f"The items have {len(collection.label_counts())} different labels, and guesses need two. Label a few "
                "items of each class."
            )
        with Lesson(collection, n_jobs=n_jobs, progress=progress):
            pass
    found = collection.guesses()
    if found is None or not found.is_current:
        raise RuntimeError("The collection was changed while its labels were guessed. Guess them again.")
    return found


def usual_source(collection: Collection) -> By:
    """Return what guesses labels if nobody says so."""
    hasher, given = collection.hasher, collection.label_counts()
    if not can_guess(hasher) or collection.journal(JOURNAL):
        return "lesson"
    known = {label_text(label) for label in collection.classes or ()}
    return "hasher" if {label_text(label) for label in given} <= known else "lesson"


def can_guess(hasher: BaseHasher) -> bool:
    """Return whether a hasher knows classes that people have named, and how probable they are."""
    return "predict_proba" in hasher.supports and not hasher.holds_clusters


def _by_hasher(collection: Collection, progress: Progress) -> None:
    hasher, version = collection.hasher, collection.version
    if not can_guess(hasher):
        raise ValueError(
            f"The model of this collection, {hasher.method_name}, gives no probabilities of classes with names. Label "
            "a few items of each class, and guess by 'lesson'."
        )
    if collection.vector_dtype is None:
        raise ValueError(
            "This collection keeps no vectors, so the labels of its items cannot be guessed. Make one that keeps them: "
            "Collection.create(..., vectors='float16')."
        )
    labeled = np.fromiter(collection.labels(), np.int64)
    ids = np.setdiff1d(collection.ids, labeled)
    rejected: dict[int, list[str]] = {}
    for item, label in rejected_guesses(read_events(collection)):
        rejected.setdefault(item, []).append(label_text(label))
    classes, parts = tuple(collection.classes or ()), []
    column = {label_text(label): place for place, label in enumerate(classes)}
    for start in range(0, len(ids), _BATCH):
        progress("guessing", start, len(ids))
        some = ids[start : start + _BATCH]
        found = collection.predict(collection.vectors(some), probabilities=True).probabilities
        shares = np.array(found, np.float32)
        for row, item in enumerate(some.tolist()):
            shares[row, [column[text] for text in rejected.get(item, ()) if text in column]] = 0.0
        parts.append((shares.argmax(axis=1), shares.max(axis=1)))
    progress("guessing", len(ids), len(ids))
    numbers = np.concatenate([np.empty(0, np.int64), *(each for each, _ in parts)]).astype(np.int64)
    sure = np.concatenate([np.empty(0, np.float32), *(each for _, each in parts)]).clip(0, 1)
    kept = sure > 0
    knows = hasher.fit_summary.knows_probabilities
    guesses = Guesses(ids[kept], classes, numbers[kept], sure[kept], "hasher", True, knows)
    collection.keep_guesses(guesses, version)


def _silent(stage: str, done: int, total: int) -> None:
    pass
