"""What happened in a lesson, one event after the other: answers, skips and undone ones, as a journal keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..exceptions import CollectionFormatError

__all__ = ["JOURNAL", "Answer", "Event", "Label", "Skip", "Undo", "event_text", "open_events", "read_event"]

JOURNAL = "lesson"
Label = str | int | bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Items that were given a label, or lost theirs (None), with what was known just before.

    Parameters
    ----------
    ids : the items
    label : what was answered
    before : their labels until then, None where there was none
    predicted : what was predicted for each, None if nothing was known
    confidences : how sure the prediction was
    ways : how each item came to be asked for, see :class:`~starshl.teaching.proposals.Proposal`; "chosen" by the person
    n_changed : how many items without a given label changed their prediction
    """

    ids: list[int]
    label: Label | None
    before: list[Label | None]
    predicted: list[Label | None]
    confidences: list[float]
    ways: list[str]
    n_changed: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Items that should not be proposed any more."""

    ids: list[int]


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes the event of this number back, counted from 0 in the order in which they happened."""

    number: int


Event = Answer | Skip | Undo
_KINDS: dict[str, type[Answer | Skip | Undo]] = {"answer": Answer, "skip": Skip, "undo": Undo}


def event_text(event: Event) -> str:
    """Return an event as the journal keeps it."""
    return json.dumps({"kind": type(event).__name__.lower(), **asdict(event)}, separators=(",", ":"))


def read_event(text: str) -> Event:
    """Return the event of an entry of the journal; a crafted file may hold anything there."""
    try:
        fields: dict[str, Any] = json.loads(text)
        return _KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CollectionFormatError(
            f"The lesson has an entry that cannot be read ({text[:60]!r}). Restore the collection from a copy."
        ) from error


def open_events(events: Sequence[Event]) -> list[tuple[int, Answer | Skip]]:
    """Return the answers and skips that were not undone, with their numbers.

    >>> open_events([Skip([1]), Skip([2]), Undo(1)])
    [(0, Skip(ids=[1]))]
    """
    undone = {event.number for event in events if isinstance(event, Undo)}
    return [
        (number, event) for number, event in enumerate(events) if not isinstance(event, Undo) and number not in undone
    ]
