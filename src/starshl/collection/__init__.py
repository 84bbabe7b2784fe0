"""Items that survive crashes: codes, labels and metadata in one folder, with the hasher that made the codes."""

from __future__ import annotations

from .collection import Collection
from .explanation import Explanation
from .items import Item
from .previews import Preview
from .search import Hit

__all__ = [
    "Collection",
    "Explanation",
    "Hit",
    "Item",
    "Preview",
]
