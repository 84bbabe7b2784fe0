"""The durable collection: items, codes and their hasher in one folder on SQLite."""

from .collection import Collection, Hit, Item
from .explanation import Explanation
from .previews import Preview

__all__ = ["Collection", "Explanation", "Hit", "Item", "Preview"]
