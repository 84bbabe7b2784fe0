"""Lessons: a person labels a few items of a collection, and the labels of all others follow."""

from .background import CodesState
from .export import export_atlas, export_labels
from .lesson import Lesson
from .prequential import CurvePoint
from .proposals import Proposal
from .states import ClassCount, ItemMap, LessonState, Predictions, Suspect, Update

__all__ = [
    "ClassCount",
    "CodesState",
    "CurvePoint",
    "ItemMap",
    "Lesson",
    "LessonState",
    "Predictions",
    "Proposal",
    "Suspect",
    "Update",
    "export_atlas",
    "export_labels",
]
