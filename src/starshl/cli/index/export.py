"""``starshl index export``: all items in a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..._words import counted
from ..options import AsJson, Progress
from ..outputs import check_output
from .common import Folder, busy, opened, print_answer

__all__ = ["export"]

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A .parquet or .jsonl file to write.")]


def export(folder: Folder, output: Output, progress: Progress = None, as_json: AsJson = False) -> None:
    """Write all items to a file that other programs can read.

    Codes are packed bytes.
    """
    files = folder.iterdir() if folder.is_dir() else ()
    check_output(output, files, suffixes=(".parquet", ".jsonl"))
    with opened(folder, read_only=True) as collection, busy("writing", progress):
        n_items = collection.export(output)
    text = f"{counted(n_items, 'item')} written to {output}"
    print_answer({"file": str(output), "items": n_items}, text, as_json)
