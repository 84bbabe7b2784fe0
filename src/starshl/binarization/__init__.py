"""Binarize my embeddings: turn vectors into a collection of codes and a page that says what the codes lose."""

from .binarize import binarize
from .comparison import Comparison
from .defaults import default_method
from .figures import MethodFigures
from .measure import compare

__all__ = ["Comparison", "MethodFigures", "binarize", "compare", "default_method"]
