"""A revision of a lesson: the labels at one version of its collection, and all that follows from them and is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._common.labels import Label
from ..collection.guesses import Guesses
from .active_learning import ClassProbabilities
from .events import Answer, Event, Skip, active_events

# Probability of another class from which a label is suspected. Proposed items lie between classes, where the other
# labels often guess wrong, but seldom surely. A lower value finds more wrong labels and doubts more right ones.
_SUSPICION = 0.7


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


class ItemMap(NamedTuple):
    """Where items are in the unit square, float32; items near each other are similar."""

    ids: np.ndarray
    x: np.ndarray
    y: np.ndarray


class LessonState(NamedTuple):
    """Where a lesson stands; ``mean_confidence`` estimates the share of labels that are right.

    Before ``knows_confidence``, labels cannot tell how right confidences are: too few of them, or too many that are the
    only one of their class.
    """

    version: int
    n_items: int
    n_given: int
    n_skipped: int
    classes: list[ClassCount]
    mean_confidence: float
    knows_confidence: bool
    can_undo: bool


@dataclass(frozen=True, slots=True)
class Revision:
    """The labels and predictions of all items at one version.

    Never changed afterward, so that threads may read it while others make the next one.

    Parameters
    ----------
    version : that of the collection whose labels these are
    events : all that ever happened, undone or not
    classes : in the order in which answers first named them, then those from elsewhere
    given : int array of shape (n_items,), numbers of classes, -1 for none
    skipped : bool array of shape (n_items,)
    spread : how likely all items are of each class, as it follows from the labels
    estimate : the same without the guesses that somebody has rejected
    """

    version: int
    events: tuple[Event, ...]
    classes: tuple[Label, ...]
    given: np.ndarray
    skipped: np.ndarray
    spread: ClassProbabilities
    estimate: ClassProbabilities

    def after(self, event: Event, ids: np.ndarray) -> Revision:
        """Return the state after an event that changes no label; ``ids`` are those of all items."""
        events = (*self.events, event)
        return replace(self, version=self.version + 1, events=events, skipped=skipped_items(events, ids))

    def guesses(self, ids: np.ndarray) -> Guesses:
        """Return what is guessed of the items without a label; nothing as long as there is a single class."""
        guessed = np.flatnonzero((self.given < 0) & (self.estimate.predicted >= 0) & (len(self.classes) > 1))
        return Guesses(
            ids[guessed],
            self.classes,
            self.estimate.predicted[guessed].astype(np.int64),
            np.clip(self.estimate.confidences[guessed], 0, 1).astype(np.float32),
            "lesson",
            True,
            self.estimate.knows_confidence,
        )

    def name(self, number: int) -> Label | None:
        """Return a class by its number, None for -1."""
        return None if number < 0 else self.classes[number]

    def names(self, numbers: np.ndarray) -> np.ndarray:
        """Return classes by their numbers in an array of objects, None for -1."""
        return np.array([*self.classes, None], dtype=object)[numbers]

    def state(self) -> LessonState:
        """Return what users see of it."""
        n_classes = len(self.classes)
        given = np.bincount(self.given[self.given >= 0], minlength=n_classes)
        predicted = np.bincount(self.estimate.predicted[self.estimate.predicted >= 0], minlength=n_classes)
        counts = [
            ClassCount(label, int(given[number]), int(predicted[number] - given[number]))
            for number, label in enumerate(self.classes)
        ]
        return LessonState(
            version=self.version,
            n_items=len(self.given),
            n_given=int(given.sum()),
            n_skipped=int(self.skipped.sum()),
            classes=counts,
            mean_confidence=float(self.estimate.confidences.mean()),
            knows_confidence=self.estimate.knows_confidence,
            can_undo=bool(active_events(self.events)),
        )

    def suspects(self, ids: np.ndarray, n: int) -> list[Suspect]:
        """Return items whose given label does not fit the others; the only label of a class is not suspected."""
        without, labeled = self.estimate.spread.left_out, np.flatnonzero(self.given >= 0)
        if without.shape[1] < 2:
            return []
        own, best, rows = self.given[labeled], without.argmax(axis=1), np.arange(len(labeled))
        is_only = np.bincount(own, minlength=len(self.classes))[own] == 1
        doubt = np.where((best == own) | is_only, 0.0, without.max(axis=1) - without[rows, own])
        doubt[without.max(axis=1) < _SUSPICION] = 0.0
        return [
            Suspect(
                int(ids[labeled[row]]),
                self.classes[own[row]],
                self.classes[best[row]],
                float(without[row, best[row]]),
            )
            for row in np.argsort(-doubt, kind="stable")[:n].tolist()
            if doubt[row] > 0
        ]


def skipped_items(events: Sequence[Event], ids: np.ndarray) -> np.ndarray:
    """Return which items were skipped."""
    skipped = [item for _, event in active_events(events) if isinstance(event, Skip) for item in event.ids]
    return np.isin(ids, np.array(skipped, np.int64))


def without_rejected(
    spread: ClassProbabilities,
    rejected: Sequence[tuple[int, Label]],
    classes: Sequence[Label],
    given: np.ndarray,
    ids: np.ndarray,
) -> ClassProbabilities:
    """Return probabilities without what somebody has rejected.

    The others of such an item stay as they are. To raise them to a sum of 1 would be to say that the item is of one of
    the classes that have a name.
    """
    number = {label: place for place, label in enumerate(classes)}
    place_of = {int(ids[place]): int(place) for place in np.flatnonzero(np.isin(ids, [item for item, _ in rejected]))}
    pairs = [
        (place_of[item], number[label])
        for item, label in rejected
        if item in place_of and label in number and given[place_of[item]] < 0
    ]
    if not pairs:
        return spread
    places, numbers = np.array(pairs).T
    probabilities, beliefs, predicted = spread.probabilities.copy(), spread.beliefs.copy(), spread.predicted.copy()
    probabilities[places, numbers] = beliefs[places, numbers] = 0.0
    left = probabilities[places]
    predicted[places] = np.where(left.max(axis=1) > 0, left.argmax(axis=1), -1)
    return replace(spread, spread=replace(spread.spread, index=predicted, probabilities=probabilities), beliefs=beliefs)


def class_numbers(classes: Sequence[Label], names: np.ndarray) -> np.ndarray:
    """Return the number of the class of each name, -1 for None."""
    numbers = {None: -1} | {label: number for number, label in enumerate(classes)}
    return np.array([numbers[name] for name in names.tolist()], np.int64)


def n_changed(before: Revision, after: Revision) -> int:
    """Return how many items without a given label have another prediction than before."""
    differ = before.names(before.estimate.predicted) != after.names(after.estimate.predicted)
    return int(np.sum(differ & (after.given < 0)))


def ordered_classes(events: Sequence[Event], names: np.ndarray) -> tuple[Label, ...]:
    """Return the classes of items in the order in which answers named them, then those from elsewhere."""
    present = set(names.tolist()) - {None}
    answered = [label for _, event in active_events(events) if isinstance(event, Answer) for label in event.labels]
    named = [label for label in dict.fromkeys(answered) if label in present]
    return (*named, *sorted(present - set(named), key=str))
