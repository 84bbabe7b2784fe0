"""Changes of a lesson as a page sends them: in order, and each stored once, however often it arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .._words import counted
from ..answers import Label
from ..teaching import Lesson
from .errors import UnknownError
from .lessons import label_from_text
from .present import unknown_ids
from .searcher import Searcher

__all__ = ["Done", "LessonChange", "make_change", "make_changes"]


@dataclass(frozen=True, slots=True)
class LessonChange:
    """An answer, a skip, or an undo.

    ``label`` is what somebody typed as the answer; None takes labels away. A change with a ``key`` leaves a receipt, by
    which it is recognized if it comes a second time.
    """

    action: Literal["answer", "skip", "undo"]
    ids: Sequence[int] = ()
    label: str | None = None
    key: str | None = None


@dataclass(slots=True)
class Done:
    """What became of changes: a sentence for people, the items that an undo brought back, and refusals by key."""

    message: str = ""
    restored: list[int] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)


def make_changes(searcher: Searcher, lesson: Lesson, changes: Sequence[LessonChange]) -> Done:
    """Make changes one after the other; one that is refused does not keep those behind it from being made."""
    total, messages = Done(), []
    for change in changes:
        try:
            done = make_change(searcher, lesson, change)
        except (ValueError, UnknownError) as error:
            total.refused.append({"key": change.key or "", "detail": str(error)})
            continue
        total.restored = done.restored
        messages += [done.message] if done.message else []
    if messages:
        several = f"{counted(len(messages), 'change')} stored, the last: " if len(messages) > 1 else ""
        total.message = several + messages[-1]
    return total


def make_change(searcher: Searcher, lesson: Lesson, change: LessonChange) -> Done:
    """Make one change when it is its turn; nothing happens, and nothing is said, if it was made before."""
    make = {"answer": _answer, "skip": _skip, "undo": _undo}[change.action]
    receipt = f"lesson/{change.key}"

    def once() -> Done:
        if change.key is None:
            return make(lesson, change)
        if lesson.collection.receipt(receipt) is not None:
            return Done()
        with lesson.collection.receipting(receipt, change.action):
            return make(lesson, change)

    # While nothing else is written, such as a snapshot.
    with unknown_ids():
        done: Done = searcher.undisturbed(once).result()
    return done


def _answer(lesson: Lesson, change: LessonChange) -> Done:
    label = None
    if change.label is not None:
        label = label_from_text(change.label, lesson.collection.label_kind, lesson.classes)
    update = lesson.answer(change.ids, label)
    what = "unlabeled" if change.label is None else _labeled(label, change.label)
    return Done(f"{counted(len(change.ids), 'item')} {what}; {counted(update.n_changed, 'other')} changed.")


def _labeled(label: Label | None, typed: str) -> str:
    """Say which label items have now, and that it is a known class if it was typed in other letters."""
    is_known = isinstance(label, str) and label != typed.strip()
    return f"labeled {label}, as that class is written already" if is_known else f"labeled {label}"


def _skip(lesson: Lesson, change: LessonChange) -> Done:
    lesson.skip(change.ids)
    return Done(f"{counted(len(change.ids), 'item')} skipped.")


def _undo(lesson: Lesson, change: LessonChange) -> Done:
    update = lesson.undo()
    if update is None:
        return Done("There is nothing to undo.")
    return Done(f"Undone: {counted(len(update.ids), 'item')} as before.", list(update.ids))
