"""Binarize my embeddings: vectors in; a collection of codes, and a page that says what they cost, out."""

from .binarize import binarize
from .comparison import Comparison, MethodFigures
from .measure import compare

__all__ = ["Comparison", "MethodFigures", "binarize", "compare"]
