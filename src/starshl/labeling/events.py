"""What happened in a lesson, as its journal keeps it, and how well it guessed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.labels import Label
from ..collection.collection import Collection
from ..exceptions import CollectionFormatError

JOURNAL = "lesson"
_WINDOW = 20  # answers: few enough to follow the lesson, enough for an interval that says something
_Z = 1.96  # of a 95% interval


@dataclass(frozen=True, slots=True)
class Answer:
    """Items that were given labels, or lost theirs (None), with what was known just before.

    Parameters
    ----------
    ids : the items
    labels : what was answered for each
    before : their labels until then, None where there was none
    predicted : what was predicted for each, None if nothing was known
    confidences : how sure the prediction was
    ways : how each item came to be asked for, see :class:`~starshl.labeling.Proposal`; "chosen" by the person, or
        "accepted", which says nothing of how often guesses are right, because only right ones are accepted
    n_changed : how many items without a given label changed their prediction
    version : that of the collection which the answer made; labels are what classes were called then
    """

    ids: list[int]
    labels: list[Label | None]
    before: list[Label | None]
    predicted: list[Label | None]
    confidences: list[float]
    ways: list[str]
    n_changed: int
    version: int

    def renamed(self, name: Callable[[Label | None, int], Label | None]) -> Answer:
        """Return the answer under the names that ``name`` gives the labels of a version."""
        return replace(
            self,
            labels=[name(label, self.version) for label in self.labels],
            before=[name(label, self.version) for label in self.before],
            predicted=[name(label, self.version) for label in self.predicted],
        )


@dataclass(frozen=True, slots=True)
class Skip:
    """Items that should not be proposed any more."""

    ids: list[int]


@dataclass(frozen=True, slots=True)
class Reject:
    """Guesses that a person has said are wrong: items, and a label that each does not have, as of a version."""

    ids: list[int]
    labels: list[Label | None]
    version: int

    def renamed(self, name: Callable[[Label | None, int], Label | None]) -> Reject:
        """Return it under the names that ``name`` gives the labels of a version."""
        return replace(self, labels=[name(label, self.version) for label in self.labels])


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes the event of this number back, counted from 0 in the order in which they happened."""

    number: int


Event = Answer | Skip | Reject | Undo
_KINDS: dict[str, type[Event]] = {"answer": Answer, "skip": Skip, "reject": Reject, "undo": Undo}


def event_text(event: Event) -> str:
    """Return an event as the journal keeps it."""
    return json.dumps({"kind": type(event).__name__.lower(), **asdict(event)}, separators=(",", ":"))


def read_event(text: str) -> Event:
    """Return the event of an entry of the journal; a crafted file may hold anything there."""
    try:
        fields: dict[str, Any] = json.loads(text)
        return _KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CollectionFormatError.damaged(f"the lesson has an entry that cannot be read ({text[:60]!r})") from error


def read_events(collection: Collection) -> tuple[Event, ...]:
    """Return all that has happened, under the names that classes have now: an undo must not bring an old one back."""
    read = map(read_event, collection.journal(JOURNAL))
    named = Answer | Reject
    return tuple(event.renamed(collection.label_since) if isinstance(event, named) else event for event in read)


def rejected_guesses(events: Sequence[Event]) -> list[tuple[int, Label]]:
    """Return pairs of an item and a label that it does not have, as somebody said."""
    return [
        (item, label)
        for _, event in active_events(events)
        if isinstance(event, Reject)
        for item, label in zip(event.ids, event.labels, strict=True)
        if label is not None
    ]


def active_events(events: Sequence[Event]) -> list[tuple[int, Answer | Skip | Reject]]:
    """Return what was not undone, with its numbers.

    >>> active_events([Skip([1]), Skip([2]), Undo(1)])
    [(0, Skip(ids=[1]))]
    """
    undone = {event.number for event in events if isinstance(event, Undo)}
    return [
        (number, event) for number, event in enumerate(events) if not isinstance(event, Undo) and number not in undone
    ]


class CurvePoint(NamedTuple):
    """Where a lesson stood after an answer.

    ``agreement`` is the share of the last ``n_compared`` labels, 20 at most, that had been predicted; None without
    any. ``low`` and ``high`` bound it with 95% confidence (Wilson). ``n_changed`` counts the items whose prediction
    the answer changed.
    """

    n_given: int
    agreement: float | None
    low: float | None
    high: float | None
    n_compared: int
    n_changed: int


def agreement_curve(answers: Iterable[Answer], window: int = _WINDOW, *, only_random: bool = False) -> list[CurvePoint]:
    """Return how often predictions made before an answer agreed with it.

    There is one point per answer, in their order; labels that replace others are not compared.
    """
    hits: list[bool] = []
    n_given, points = 0, []
    for answer in answers:
        each = zip(answer.labels, answer.predicted, answer.before, answer.ways, strict=True)
        hits += [
            predicted == label
            for label, predicted, before, way in each
            if None not in (label, predicted)
            and before is None
            and (way == "random" or not (only_random or way == "accepted"))
        ]
        n_given += _n_added(answer)
        points.append(CurvePoint(n_given, *_share(hits[-window:]), answer.n_changed))
    return points


def _n_added(answer: Answer) -> int:
    return sum(label is not None for label in answer.labels) - sum(label is not None for label in answer.before)


def _share(hits: list[bool]) -> tuple[float | None, float | None, float | None, int]:
    """Return a share, the bounds of its Wilson interval, and of how many it is one."""
    n = len(hits)
    if n == 0:
        return None, None, None, 0
    share = sum(hits) / n
    center = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * float(np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)))
    return share, max(0.0, center - half), min(1.0, center + half), n
