"""Items that survive crashes: codes, labels and metadata in one folder, with the hasher that made the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .answers import Explanation, Found, Hit, Item
    from .collection import Collection
    from .options import Filters, SearchOptions
    from .previews import Preview

__all__ = [
    "Collection",
    "Explanation",
    "Filters",
    "Found",
    "Hit",
    "Item",
    "Preview",
    "SearchOptions",
]

# On first use: clients of a service import the answers, and need no collection for that.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "answers": ["Explanation", "Found", "Hit", "Item"],
        "collection": ["Collection"],
        "options": ["Filters", "SearchOptions"],
        "previews": ["Preview"],
    },
)
