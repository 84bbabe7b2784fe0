"""A search service over collections: plain Python here, and HTTP on top of it in ``web.http``.

A ``service`` has one ``searcher`` per collection, which many threads ask at a time; ``requests`` and ``errors`` are
what goes in and what may come out. The other files, by what they serve:

- Searches: ``batching``, ``encoding``, ``searching``, ``gate``, ``futures``, ``events``.
- Changes: ``writes``, ``chosen``, ``present``.
- What arrives: ``vectors``, ``table_rows``, ``raw`` pictures and texts, ``uploads``.
- Jobs in the background: ``jobs``, ``job_log``, ``interrupted``; ``fitting``; ``importing`` (``lines``,
  ``import_check``).
- Snapshots: ``snapshots``, ``archive``.
- Pages: ``workshop`` prepares what they show: ``side_by_side``, ``quality``, ``classes``, ``portraits``,
  ``training_run``, ``places``, ``lessons``, ``lesson_changes``, ``exporting``; ``demo`` makes collections to try.
- Running it: ``settings``, ``tokens``, ``logs``.
"""

from __future__ import annotations

from .searcher import Searcher
from .service import Service

__all__ = [
    "Searcher",
    "Service",
]
