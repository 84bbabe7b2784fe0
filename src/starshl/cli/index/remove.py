"""``starshl index remove``: remove items from a collection."""

from __future__ import annotations

from typing import Annotated

import typer

from ..._words import counted
from ..options import AsJson
from .common import Folder, ItemIds, opened, print_answer, unknown_ids_reported

__all__ = ["remove"]

Compact = Annotated[bool, typer.Option("--compact", help="Shrink the file afterward.")]


def remove(folder: Folder, ids: ItemIds, compact: Compact = False, as_json: AsJson = False) -> None:
    """Remove items by id, all of them or none."""
    with opened(folder) as collection, unknown_ids_reported():
        collection.remove(ids)
        if compact:
            collection.compact()
        answer = {"removed": len(ids), "items": len(collection)}
    print_answer(answer, f"{counted(answer['removed'], 'item')} removed, {answer['items']:,} left", as_json)
