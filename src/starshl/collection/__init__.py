"""The durable collection: items, codes and their hasher in one folder on SQLite."""

from .binarize import Binarization, binarize, compare
from .collection import Collection, Hit, Item

__all__ = ["Binarization", "Collection", "Hit", "Item", "binarize", "compare"]
