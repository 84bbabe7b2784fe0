"""The durable collection: items, codes and their hasher in one folder on SQLite."""

from .collection import Collection, Hit, Item

__all__ = ["Collection", "Hit", "Item"]
