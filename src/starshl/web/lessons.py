"""What a page shows of a lesson: proposals, classes and their members, how sure the labels are, and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..answers import Label
from ..collection.labels import number_from_text
from ..teaching import ClassCount, CurvePoint, Lesson, LessonState, Proposal, Suspect

__all__ = ["Board", "ClassMembers", "board_of", "label_from_text"]

_N_BINS = 10  # of the histogram of confidences
_MEMBERS = 12  # shown of each class: one row of cards
_MOST_CLASSES = 40  # listed on the page
_SUSPECTS = 8  # listed on the page
# Below it, the other labels do not agree on what an item is either.
_DOUBTFUL = 0.6


@dataclass(frozen=True, slots=True)
class ClassMembers:
    """A class: how many items were given it or are believed to be of it, and some of the believed ones."""

    label: Label
    n_given: int
    n_predicted: int
    ids: list[int]
    confidences: list[float]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that the page of a lesson shows at one moment."""

    state: LessonState
    proposals: list[Proposal]
    members: list[ClassMembers]
    histogram: list[int]
    curve: list[CurvePoint]
    suspects: list[Suspect]

    @property
    def last(self) -> CurvePoint | None:
        """The newest point of the curve."""
        return self.curve[-1] if self.curve else None


def board_of(lesson: Lesson, n_proposals: int, order: str, first: Sequence[int] = ()) -> Board:
    """Return the board of a lesson; ``order`` shows the "least" or the "most" certain members of each class.

    Items of ``first`` that have no label come before all proposals.
    """
    state, found = lesson.state(), lesson.predictions()
    open_items = ~np.asarray(found.given)
    confidences = np.asarray(found.confidences)
    histogram = np.zeros(_N_BINS, int)
    if state.classes:
        places = np.clip((confidences[open_items] * _N_BINS).astype(int), 0, _N_BINS - 1)
        histogram = np.bincount(places, minlength=_N_BINS)
    labels = np.array(found.labels, dtype=object)
    members = [
        _members(each, found.ids, confidences, np.flatnonzero(open_items & (labels == each.label)), order)
        for each in state.classes[:_MOST_CLASSES]
    ]
    doubts = [suspect for suspect in lesson.suspects(_SUSPECTS) if suspect.confidence >= _DOUBTFUL]
    asked = _asked_again(lesson, first[:n_proposals])
    again = {each.id for each in asked}
    proposals = asked + [each for each in lesson.propose(n_proposals) if each.id not in again]
    return Board(state, proposals[:n_proposals], members, histogram.tolist(), lesson.curve(), doubts)


def _asked_again(lesson: Lesson, ids: Sequence[int]) -> list[Proposal]:
    if not ids:
        return []
    found = lesson.predictions(ids)
    return [
        Proposal(int(item), label, float(confidence), "again")
        for item, label, confidence, is_given in zip(*found, strict=True)
        if not is_given
    ]


def _members(
    each: ClassCount, ids: np.ndarray, confidences: np.ndarray, places: np.ndarray, order: str
) -> ClassMembers:
    sign = -1 if order == "most" else 1
    shown = places[np.argsort(sign * confidences[places], kind="stable")[:_MEMBERS]]
    return ClassMembers(each.label, each.n_given, each.n_predicted, ids[shown].tolist(), confidences[shown].tolist())


def label_from_text(text: str, kind: str | None, known: Sequence[Label] = ()) -> Label:
    """Return what somebody typed as a label of the type that the collection has.

    A name that differs from a known class in capitals only is that class: "Ship" typed next to "ship" is a slip far
    more often than a second class.
    """
    text = text.strip()
    if not text or len(text) > 200:
        raise ValueError("A label has 1 to 200 characters. Type a shorter one, or at least one letter.")
    if kind == "booleans":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"The label {text!r} is neither true nor false, as the labels of this collection are.")
        return text.lower() == "true"
    if kind == "numbers":
        number = number_from_text(text)
        if number is None or not -(2**63) <= number < 2**63:
            raise ValueError(
                f"The label {text!r} is not a whole number of up to 64 bits, as the labels of this collection are. "
                "Type a number."
            )
        return number
    if text in known:
        return text
    return next((each for each in known if isinstance(each, str) and each.casefold() == text.casefold()), text)
