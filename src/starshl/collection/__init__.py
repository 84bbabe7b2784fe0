"""The durable collection: items, codes and their hasher in one folder on SQLite.

Each group of files builds on those before it:

- An item: ``rows`` (what is stored of it), ``entries`` (what users see of it), ``labels``, ``fields``, ``columns``.
- The database: ``formats``, ``connection``, ``changelog`` and ``blocks``, which ``store`` joins; ``acknowledged`` keeps
  the number of its last change in a file of its own. Besides rows, it holds ``receipts`` and entries of a ``journal``
  (``sealed_texts``), ``previews``, and facts about ``raw`` pictures and texts.
- Other files of the folder: the model (``folder``), and kept vectors (``prepared_rows``, ``quantization``,
  ``vectors``, ``keeping``).
- The state: ``state`` is what searches need of it in memory; ``session`` lets threads read and change it.
- Changes: ``additions``, ``changes``.
- Questions: ``filters``, ``filtering``, ``overview``, ``rescoring``, ``search``, ``explanation``, ``sameness``, and
  ``partial`` for a collection that is one of several.
- The class: ``collection``, in layers of methods (``opened``, ``searchable``, ``recorded``); ``filling``, ``export``.
"""

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
