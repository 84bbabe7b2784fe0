"""Items that survive crashes: codes, labels and metadata in one folder, with the hasher that made the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .answers import ClassChange, ClassOfCode, Explanation, Guess, Hit, Item, Prediction, Preview, SearchResult
    from .collection import Collection
    from .guesses import Guesses
    from .importing.building import AdditionSummary, ImportSummary, Skipped
    from .importing.pictures import add_pictures, import_pictures
    from .importing.texts import add_texts, import_texts
    from .importing.vectors import binarize, import_vectors
    from .options import Filters, SearchOptions
    from .suspects import Suspect

__all__ = [
    "AdditionSummary",
    "ClassChange",
    "ClassOfCode",
    "Collection",
    "Explanation",
    "Filters",
    "Guess",
    "Guesses",
    "Hit",
    "ImportSummary",
    "Item",
    "Prediction",
    "Preview",
    "SearchOptions",
    "SearchResult",
    "Skipped",
    "Suspect",
    "add_pictures",
    "add_texts",
    "binarize",
    "import_pictures",
    "import_texts",
    "import_vectors",
]

# On first use: clients of a service import the answers, and need no collection for that.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "answers": [
            "ClassChange",
            "ClassOfCode",
            "Explanation",
            "Guess",
            "Hit",
            "Item",
            "Prediction",
            "Preview",
            "SearchResult",
        ],
        "collection": ["Collection"],
        "guesses": ["Guesses"],
        "importing.building": ["AdditionSummary", "ImportSummary", "Skipped"],
        "importing.pictures": ["add_pictures", "import_pictures"],
        "importing.texts": ["add_texts", "import_texts"],
        "importing.vectors": ["binarize", "import_vectors"],
        "options": ["Filters", "SearchOptions"],
        "suspects": ["Suspect"],
    },
)
