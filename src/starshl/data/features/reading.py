"""Raw items on their way to vectors: checked, read portion by portion, through the cache, and counted where cut."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._common.progress import row_progress
from ..._common.threads import tiles, using_threads
from ..._common.words import counted
from .embedding_cache import EmbeddingCache

_PORTION = 1024  # items that are read between two steps of a progress bar; texts are sorted by length among them
_SHOWN = 5  # numbers of empty texts in a message


def read_items(
    items: Sequence[Any],
    takes: Sequence[str],
    readers: Sequence[Any],
    *,
    n_jobs: int | None = None,
    progress: bool | None = False,
) -> Any:
    """Return what steps that read items make of them; without such steps, the items as they are.

    ``progress`` is as ``shown`` of :func:`row_progress`.
    """
    check_items(items, takes)
    if not readers:
        return items
    parts = []
    with using_threads(n_jobs), row_progress("embedding", len(items), shown=progress) as report:
        make, cache = partial(through, readers), EmbeddingCache.of(readers)
        for portion in tiles(len(items), _PORTION):
            some = items[portion]
            parts.append(make(some) if cache is None else cache.rows(some, make))
            report(len(some))
    return np.concatenate(parts) if parts else through(readers, items)


def through(steps: Sequence[Any], rows: Any) -> Any:
    """Return what steps make of rows, one after the other."""
    for step in steps:
        rows = step.transform(rows)
    return rows


def check_items(items: Sequence[Any], takes: Sequence[str]) -> None:
    """Refuse items of another kind than an embedder takes, and empty texts."""
    if isinstance(items, str | bytes):
        raise TypeError(f"items is a single {type(items).__name__}; give a list of them.")
    if "texts" not in takes:
        return
    if set(takes) == {"texts"}:
        other = next((item for item in items if not isinstance(item, str)), "")
        if not isinstance(other, str):
            raise ValueError(
                f"An item is of type {type(other).__name__}; this embedder takes texts, which are strings. Give texts, "
                "or an embedder of what you have."
            )
    empty = [number for number, item in enumerate(items) if isinstance(item, str) and not item.strip()]
    if empty:
        listed = ", ".join(map(str, empty[:_SHOWN])) + ", ..." * (len(empty) > _SHOWN)
        which = "The text is" if len(items) == 1 else f"{counted(len(empty), 'text')} of {len(items):,} (rows {listed},"
        which = which if len(items) == 1 else f"{which} counted from 0) {'is' if len(empty) == 1 else 'are'}"
        raise ValueError(f"{which} empty; an empty text has no vector. Leave such rows out.")


def cut_note(name: str, readers: Sequence[Any], texts: Sequence[Any]) -> str | None:
    """Say how many texts are longer than the steps of an embedder of this name read, None if there are none."""
    limited = [step for step in readers if hasattr(step, "count_cut")]
    n_cut = sum(step.count_cut(texts) for step in limited)
    if not n_cut:
        return None
    verb = "is" if n_cut == 1 else "are"
    which = f"The text {verb}" if len(texts) == 1 else f"{counted(n_cut, 'text')} of {len(texts):,} {verb}"
    return f"{which} longer than {limited[0].max_tokens} tokens and cut there: {name} reads no more than that."
