"""What a lesson tells: results of answers, predictions, and where it stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .events import Label

__all__ = ["ClassCount", "ItemMap", "LessonState", "Predictions", "Suspect", "Update"]


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
    """Places of items in the unit square, float32; items near each other are similar."""

    ids: np.ndarray
    x: np.ndarray
    y: np.ndarray


class LessonState(NamedTuple):
    """Where a lesson stands; ``mean_confidence`` estimates the share of labels that are right."""

    version: int
    n_items: int
    n_given: int
    n_skipped: int
    classes: list[ClassCount]
    mean_confidence: float
    can_undo: bool
