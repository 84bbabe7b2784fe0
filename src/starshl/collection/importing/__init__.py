"""Collections in one call, of pictures, texts or vectors; and more pictures or texts for those that exist."""

from __future__ import annotations

from .building import AdditionSummary, ImportSummary, Skipped
from .pictures import add_pictures, import_pictures
from .texts import add_texts, import_texts
from .vectors import binarize, import_vectors

__all__ = [
    "AdditionSummary",
    "ImportSummary",
    "Skipped",
    "add_pictures",
    "add_texts",
    "binarize",
    "import_pictures",
    "import_texts",
    "import_vectors",
]
