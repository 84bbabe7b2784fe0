"""Review of guesses: accept or reject many of them in one change, and undo the last change of a lesson.

This needs the collection alone. A lesson that is open on it notices, and its undo takes the same changes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Label
from ..collection.answers import Guess, Item
from ..collection.collection import Collection
from ..index.base import check_ids
from .events import JOURNAL, Answer, Event, Reject, Skip, Undo, active_events, event_text, read_events


class Reviewed(NamedTuple):
    """The items that a review changed, and those that it left because they have a label or no guess."""

    ids: list[int]
    left: list[int]


def accept_guesses(collection: Collection, ids: ArrayLike, labels: Sequence[Label | None] | None = None) -> Reviewed:
    """Give items the labels that are guessed, all of them in one change.

    An item that has a label keeps it. :func:`undo_last` takes the change back.

    Parameters
    ----------
    collection : Collection
    ids : array of int
    labels : list of labels, default=None
        The guesses that a person has seen and accepts; what is guessed now if None.
    """
    items, names = reviewable(collection, ids, labels)
    if items:
        answer = Answer(
            ids=[item.id for item in items],
            labels=names,
            before=[None] * len(items),
            predicted=[None if item.guess is None else item.guess.label for item in items],
            confidences=[0.0 if item.guess is None else item.guess.confidence or 0.0 for item in items],
            ways=["accepted"] * len(items),
            n_changed=0,
            version=collection.version + 1,
        )
        with collection.journaling(JOURNAL, event_text(answer)):
            collection.set_labels(answer.ids, np.array(names, dtype=object), warn_unknown=False)
    return _outcome(ids, items)


def reject_guesses(collection: Collection, ids: ArrayLike, labels: Sequence[Label | None] | None = None) -> Reviewed:
    """Say that guesses are wrong, all of them in one change: these items are not guessed to be of these classes again.

    The labels of other items do not change. The next likeliest class becomes the guess as soon as labels are guessed
    again, which a lesson does at once. :func:`undo_last` takes the change back.

    Parameters
    ----------
    collection : Collection
    ids : array of int
    labels : list of labels, default=None
        The guesses that a person has seen and rejects; what is guessed now if None.
    """
    items, names = reviewable(collection, ids, labels)
    if items:
        event = Reject([item.id for item in items], names, collection.version + 1)
        collection.note(JOURNAL, event_text(event))
    return _outcome(ids, items)


def undo_last(collection: Collection) -> Reviewed | None:
    """Undo the last answer, skip, acceptance or rejection that was not undone yet; return None if there is none."""
    last = _last(collection)
    if last is None:
        return None
    number, event = last
    # Items that were removed since then have nothing left to undo.
    is_here = np.isin(event.ids, collection.ids).tolist()
    ids = [item for item, here in zip(event.ids, is_here, strict=True) if here]
    undo: Event = Undo(number)
    if isinstance(event, Answer) and ids:
        before = [label for label, here in zip(event.before, is_here, strict=True) if here]
        with collection.journaling(JOURNAL, event_text(undo)):
            collection.set_labels(ids, np.array(before, dtype=object), warn_unknown=False)
    else:
        collection.note(JOURNAL, event_text(undo))
    return Reviewed(ids, [item for item, here in zip(event.ids, is_here, strict=True) if not here])


def last_reviewed(collection: Collection) -> list[int]:
    """Return the items that :func:`undo_last` would change."""
    last = _last(collection)
    return [] if last is None else last[1].ids


def _last(collection: Collection) -> tuple[int, Answer | Skip | Reject] | None:
    active = active_events(read_events(collection))
    return active[-1] if active else None


def reviewable(
    collection: Collection, ids: ArrayLike, labels: Sequence[Label | None] | None
) -> tuple[list[Item], list[Label | None]]:
    """Return the items without a label whose guess is reviewed, and the labels that it is about."""
    checked = check_ids(np.atleast_1d(np.asarray(ids)))
    if not len(checked):
        raise ValueError("There are no ids. Give one or more.")
    if labels is not None and len(labels) != len(checked):
        raise ValueError(f"There are {len(checked)} ids and {len(labels)} labels; give one label per id, or none.")
    if labels is None and collection.guesses() is None:
        raise ValueError(
            "No labels were guessed in this collection, so there is nothing to review. Guess them first: "
            "guess_labels(collection)."
        )
    found = collection.get(checked)
    wanted = [_label(item.guess) for item in found] if labels is None else list(labels)
    pairs = [
        (item, label) for item, label in zip(found, wanted, strict=True) if item.label is None and label is not None
    ]
    return [item for item, _ in pairs], [label for _, label in pairs]


def _label(guess: Guess | None) -> Label | None:
    return None if guess is None else guess.label


def _outcome(ids: ArrayLike, items: Sequence[Item]) -> Reviewed:
    changed = [item.id for item in items]
    asked = np.atleast_1d(np.asarray(ids)).tolist()
    return Reviewed(changed, [item for item in asked if item not in set(changed)])
