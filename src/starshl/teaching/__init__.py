"""Lessons: a person labels a few items of a collection, and the labels of all others follow."""

from .lesson import ClassCount, Lesson, LessonState, Predictions, Suspect, Update
from .prequential import CurvePoint
from .proposals import Proposal

__all__ = [
    "ClassCount",
    "CurvePoint",
    "Lesson",
    "LessonState",
    "Predictions",
    "Proposal",
    "Suspect",
    "Update",
]
