"""The durable collection: items, codes and their hasher in one folder on SQLite."""

from .collection import Collection, Hit, Item
from .tables import Table, read_table

__all__ = ["Collection", "Hit", "Item", "Table", "read_table"]
