"""Lessons: a person labels a few items of a collection, and the labels of all others follow."""

from __future__ import annotations

from .active_learning import Proposal
from .background import CodesState
from .events import CurvePoint
from .export import export_atlas, export_labels
from .guessing import guess_labels
from .lesson import Lesson
from .review import Reviewed, accept_guesses, reject_guesses, undo_last
from .revision import ClassCount, ItemMap, LessonState, Predictions, Suspect, Update

__all__ = [
    "ClassCount",
    "CodesState",
    "CurvePoint",
    "ItemMap",
    "Lesson",
    "LessonState",
    "Predictions",
    "Proposal",
    "Reviewed",
    "Suspect",
    "Update",
    "accept_guesses",
    "export_atlas",
    "export_labels",
    "guess_labels",
    "reject_guesses",
    "undo_last",
]
