"""Lesson: a person labels a few items of a collection, and the labels of all others follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_integer
from ..collection import Collection
from ..collection.labels import label_of
from ..index.base import check_ids
from .beliefs import Beliefs, believe
from .events import JOURNAL, Answer, Event, Label, Skip, Undo, event_text, open_events, read_event
from .items import LessonItems, Progress
from .prequential import CurvePoint, agreement_curve
from .proposals import Proposal, choose

__all__ = ["ClassCount", "Lesson", "LessonState", "Predictions", "Suspect", "Update"]


class Update(NamedTuple):
    """What an answer, a skip or an undo did.

    ``n_changed`` counts the items without a given label whose prediction changed; ``ids`` are the items that were
    answered, skipped or restored.
    """

    version: int
    ids: list[int]
    n_changed: int
    seconds: float


class ClassCount(NamedTuple):
    """A class, how many items were given it, and for how many others it is predicted."""

    label: Label
    n_given: int
    n_predicted: int


class Predictions(NamedTuple):
    """Labels of items: given or predicted, None where nothing is known, and how sure they are (1 if given)."""

    ids: np.ndarray
    labels: list[Label | None]
    confidences: np.ndarray
    given: np.ndarray


class Suspect(NamedTuple):
    """An item whose given label the other labels speak against; ``confidence`` is that of ``predicted``."""

    id: int
    label: Label
    predicted: Label
    confidence: float


class LessonState(NamedTuple):
    """Where a lesson stands."""

    version: int
    n_items: int
    n_given: int
    n_skipped: int
    classes: list[ClassCount]
    mean_confidence: float
    can_undo: bool


@dataclass(frozen=True, slots=True)
class _Moment:
    """One state of a lesson, never changed afterwards.

    Parameters
    ----------
    version : that of the collection whose labels these are
    classes : in the order in which they first came up
    given : int array of shape (n_items,), places among the classes, -1 for none
    barred : bool array of shape (n_items,), skipped items
    """

    version: int
    events: tuple[Event, ...]
    classes: tuple[Label, ...]
    given: np.ndarray
    barred: np.ndarray
    beliefs: Beliefs


class Lesson:
    """Teach a collection by labeling a few of its items.

    Labels are those of the collection. What else a lesson knows, such as the order of the answers, is stored in the
    same transaction as the label: nothing is lost if the process ends, and a new object on the same collection goes
    on where the last one was. Any number of threads may use one object; one at a time changes it.

    Parameters
    ----------
    collection : Collection
        Keeps vectors, and is open for writing.
    n_jobs : int, default=None
        Threads for finding neighbors.
    progress : callable (stage, done, total), default=None
        Told how far the preparation is.
    """

    def __init__(self, collection: Collection, *, n_jobs: int | None = None, progress: Progress | None = None) -> None:
        self.collection = collection
        self.n_jobs = n_jobs
        self._lock = threading.RLock()
        self._ways: dict[int, str] = {}
        self._items = LessonItems.of(collection, n_jobs, progress or _silent)
        self._moment = self._read_moment()

    @property
    def version(self) -> int:
        """The version of the collection; while it stays, so do all predictions."""
        return self._current().version

    @property
    def ids(self) -> np.ndarray:
        """The ids of all items of the lesson, ascending."""
        return self._items.ids

    @property
    def classes(self) -> list[Label]:
        """The classes that have a label, in the order in which they first came up."""
        return list(self._current().classes)

    def answer(self, ids: ArrayLike, label: Label | None) -> Update:
        """Give items a label, a known one or a new one; None takes their labels away."""
        started = time.perf_counter()
        chosen, label = self._checked(ids), _check_label(label)
        with self._lock:
            moment = self._current()
            places = self._items.places(chosen)
            event = Answer(
                ids=chosen.tolist(),
                label=label,
                before=[_named(moment.classes, number) for number in moment.given[places]],
                predicted=[_named(moment.classes, number) for number in moment.beliefs.index[places]],
                confidences=np.round(moment.beliefs.confidences[places], 4).tolist(),
                ways=[self._ways.get(item, "chosen") for item in chosen.tolist()],
                n_changed=0,
            )
            after = [label] * len(chosen)
            successor = self._relabeled(moment, event, places, after)
            n_changed = _n_changed(moment, successor)
            self._store(successor, replace(event, n_changed=n_changed), chosen, after)
            return Update(self._moment.version, chosen.tolist(), n_changed, time.perf_counter() - started)

    def skip(self, ids: ArrayLike) -> Update:
        """Do not propose these items any more."""
        started = time.perf_counter()
        chosen = self._checked(ids)
        with self._lock:
            self._items.places(chosen)
            event = Skip(chosen.tolist())
            self._store(self._with_event(self._current(), event), event)
            return Update(self._moment.version, chosen.tolist(), 0, time.perf_counter() - started)

    def undo(self) -> Update | None:
        """Take the last answer or skip back that was not undone yet; None if there is none."""
        started = time.perf_counter()
        with self._lock:
            moment = self._current()
            opened = open_events(moment.events)
            if not opened:
                return None
            number, event = opened[-1]
            undo, n_changed = Undo(number), 0
            if isinstance(event, Answer):
                ids = np.array(event.ids, np.int64)
                successor = self._relabeled(moment, undo, self._items.places(ids), event.before)
                n_changed = _n_changed(moment, successor)
                self._store(successor, undo, ids, event.before)
            else:
                self._store(self._with_event(moment, undo), undo)
            return Update(self._moment.version, list(event.ids), n_changed, time.perf_counter() - started)

    def propose(self, n: int = 9) -> list[Proposal]:
        """Return items that are worth a label, the most useful one first."""
        n = check_integer(n, "n", low=1)
        moment = self._current()
        proposals = [
            Proposal(
                int(self._items.ids[place]),
                _named(moment.classes, moment.beliefs.index[place]),
                float(moment.beliefs.confidences[place]),
                way,
            )
            for place, way in choose(self._items.graph, moment.given, moment.beliefs, moment.barred, n)
        ]
        self._ways.update({proposal.id: proposal.way for proposal in proposals})
        return proposals

    def predictions(self, ids: ArrayLike | None = None) -> Predictions:
        """Return the labels and confidences of items, of all if ``ids`` is None."""
        moment = self._current()
        chosen = self._items.ids if ids is None else self._checked(ids)
        places = self._items.places(chosen)
        labels = [_named(moment.classes, number) for number in moment.beliefs.index[places]]
        return Predictions(chosen, labels, moment.beliefs.confidences[places], moment.given[places] >= 0)

    def state(self) -> LessonState:
        """Return where the lesson stands."""
        moment = self._current()
        n_classes = len(moment.classes)
        given = np.bincount(moment.given[moment.given >= 0], minlength=n_classes)
        all_of = np.bincount(moment.beliefs.index[moment.beliefs.index >= 0], minlength=n_classes)
        counts = [
            ClassCount(label, int(given[place]), int(all_of[place] - given[place]))
            for place, label in enumerate(moment.classes)
        ]
        return LessonState(
            version=moment.version,
            n_items=len(self._items.ids),
            n_given=int(given.sum()),
            n_skipped=int(moment.barred.sum()),
            classes=counts,
            mean_confidence=float(moment.beliefs.confidences.mean()),
            can_undo=bool(open_events(moment.events)),
        )

    def curve(self) -> list[CurvePoint]:
        """Return how well predictions agreed with the labels given since, one point per answer."""
        return agreement_curve(event for _, event in open_events(self._current().events) if isinstance(event, Answer))

    def suspects(self, n: int = 20) -> list[Suspect]:
        """Return items whose given label looks wrong to the other labels, the most doubtful one first."""
        moment = self._current()
        labeled = np.flatnonzero(moment.given >= 0)
        without = moment.beliefs.without_own
        if without.shape[1] < 2:
            return []
        own = moment.given[labeled]
        n_given = np.bincount(own, minlength=len(moment.classes))
        best, rows = without.argmax(axis=1), np.arange(len(labeled))
        doubt = np.where((best != own) & (n_given[own] > 1), without.max(axis=1) - without[rows, own], 0.0)
        order = [row for row in np.argsort(-doubt, kind="stable")[:n].tolist() if doubt[row] > 0]
        return [
            Suspect(
                int(self._items.ids[labeled[row]]),
                moment.classes[own[row]],
                moment.classes[best[row]],
                float(without[row, best[row]]),
            )
            for row in order
        ]

    def close(self) -> None:
        """End what runs in the background; the collection stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _checked(self, ids: ArrayLike) -> np.ndarray:
        chosen = check_ids(np.atleast_1d(np.asarray(ids)))
        if not len(chosen):
            raise ValueError("There are no ids. Give one or more.")
        return chosen

    def _current(self) -> _Moment:
        """Return the newest state, in which labels that came from elsewhere are known."""
        moment = self._moment
        if self.collection.version != moment.version:
            with self._lock:
                if self.collection.version != self._moment.version:
                    self._moment = self._read_moment()
                moment = self._moment
        return moment

    def _read_moment(self) -> _Moment:
        """Return the state that the collection holds."""
        # Read first: if the collection changes meanwhile, the next call reads again.
        version = self.collection.version
        events = tuple(read_event(text) for text in self.collection.journal(JOURNAL))
        labels = {row.id: label_of(row) for row in self.collection.rows()}
        names = np.array([labels.get(item) for item in self._items.ids.tolist()], dtype=object)
        classes = _ordered_classes(events, names)
        given = _numbers(classes, names)
        beliefs = believe(self._items.graph, given, len(classes))
        return _Moment(version, events, classes, given, self._barred(events), beliefs)

    def _barred(self, events: Sequence[Event]) -> np.ndarray:
        skipped = [item for _, event in open_events(events) if isinstance(event, Skip) for item in event.ids]
        return np.isin(self._items.ids, np.array(skipped, np.int64))

    def _with_event(self, moment: _Moment, event: Event) -> _Moment:
        """Return the state after an event that changes no label."""
        events = (*moment.events, event)
        return replace(moment, version=moment.version + 1, events=events, barred=self._barred(events))

    def _relabeled(
        self, moment: _Moment, event: Answer | Undo, places: np.ndarray, labels: Sequence[Label | None]
    ) -> _Moment:
        """Return the state after an event that gives items these labels."""
        after = self._with_event(moment, event)
        names = np.array([*moment.classes, None], dtype=object)[moment.given]
        names[places] = labels
        classes = _ordered_classes(after.events, names)
        given = _numbers(classes, names)
        return replace(after, classes=classes, given=given, beliefs=believe(self._items.graph, given, len(classes)))

    def _store(
        self, successor: _Moment, event: Event, ids: np.ndarray | None = None, labels: Sequence[Label | None] = ()
    ) -> None:
        """Store an event and its labels in one transaction, and make what follows from them the newest state."""
        if ids is None:
            self.collection.note(JOURNAL, event_text(event))
        else:
            with self.collection.noting(JOURNAL, event_text(event)):
                self.collection.set_labels(ids, np.array(labels, dtype=object), warn_unknown=False)
        # If another change came between, this version is not the newest one, and the next call reads again.
        self._moment = replace(successor, events=(*successor.events[:-1], event))


def _check_label(label: object) -> Label | None:
    """Return a label as JSON holds it; refuse what cannot be one, or marks items without one elsewhere."""
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, bool) or (isinstance(value, int) and value != -1):
        return value
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(
        f"The label is {label!r}; a label is text that is not empty, or a whole number other than -1. Give one of "
        "them, or None to take labels away."
    )


def _silent(stage: str, done: int, total: int) -> None:
    pass


def _named(classes: Sequence[Label], number: int) -> Label | None:
    return None if number < 0 else classes[number]


def _numbers(classes: Sequence[Label], names: np.ndarray) -> np.ndarray:
    """Return the place of each name among the classes, -1 for None."""
    place = {None: -1} | {label: number for number, label in enumerate(classes)}
    return np.array([place[name] for name in names.tolist()], np.int64)


def _n_changed(before: _Moment, after: _Moment) -> int:
    """Return how many items without a given label are believed to be of another class than before."""
    names_before = np.array([*before.classes, None], dtype=object)[before.beliefs.index]
    names_after = np.array([*after.classes, None], dtype=object)[after.beliefs.index]
    return int(np.sum((names_before != names_after) & (after.given < 0)))


def _ordered_classes(events: Sequence[Event], names: np.ndarray) -> tuple[Label, ...]:
    """Return the classes of items in the order in which answers named them, then those from elsewhere."""
    present = set(names.tolist()) - {None}
    answered = [event.label for _, event in open_events(events) if isinstance(event, Answer)]
    named = [label for label in dict.fromkeys(answered) if label in present]
    return (*named, *sorted(present - set(named), key=str))
