"""Binarize my embeddings: turn vectors into a collection of codes and a page that says what the codes lose."""

from .binarize import binarize
from .compare import compare
from .comparison import Comparison, LengthComparison
from .figures import MethodFigures
from .page import write_page
from .questions import Answer, Question
from .rows_shown import find_titles, guess_picture_shape

__all__ = [
    "Answer",
    "Comparison",
    "LengthComparison",
    "MethodFigures",
    "Question",
    "binarize",
    "compare",
    "find_titles",
    "guess_picture_shape",
    "write_page",
]
