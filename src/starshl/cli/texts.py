"""Texts as the options of a command describe them: a column of a table, or the lines of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .rows import RowOptions, label_file, with_labels

if TYPE_CHECKING:
    from ..tables import Table

__all__ = ["LINES", "TextColumn", "about_items", "read_texts"]

TextColumn = Annotated[str | None, typer.Option("--text", "-t", metavar="COLUMN", help="The column of texts.")]

#: The ending of a file with one text per line.
LINES = ".txt"


def read_texts(
    file: Path, text: str | None, options: RowOptions, named: dict[str, str | None]
) -> tuple[list[str], dict[str, Any]]:
    """Return texts and what belongs to them: labels, ids, metadata and references, and the ``field`` they came from.

    ``named`` are the columns that options name besides those in ``options``; a file of lines has none.
    """
    return _read_lines(file, options, named) if file.suffix.lower() == LINES else _read_table(file, text, options)


def about_items(table: Table) -> dict[str, Any]:
    """Return what belongs to the rows of a table, as a collection takes it."""
    return {"ids": table.ids, "metadata": table.metadata, "references": table.references}


def _read_table(file: Path, text: str | None, options: RowOptions) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a table and what belongs to them."""
    from dataclasses import replace

    from ..tables import READABLE, Columns, read_table

    if file.suffix.lower() not in READABLE:
        what = "is a folder" if file.is_dir() else f"ends in {file.suffix!r}"
        raise ValueError(
            f"{str(file)!r} {what}; texts are read from .txt, one per line, or from a column of {', '.join(READABLE)}. "
            "Convert it first."
        )
    if text is None:
        raise ValueError(
            f"{str(file)!r} is a table, and it is not clear which column holds the texts. Name it with --text."
        )
    options.check()
    named = options.columns()
    columns: Columns = replace(named, features=(text,), text=text, others="metadata", raw=True, allow_missing=True)
    table = with_labels(read_table(file, columns), options)
    # A cell that is not equal to itself is NaN: the mark of an empty one in Parquet.
    cells = ["" if cell is None or cell != cell else str(cell) for cell in table.X[:, 0].tolist()]
    return cells, {"labels": table.y, "field": text, **about_items(table)}


def _read_lines(file: Path, options: RowOptions, named: dict[str, str | None]) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a file without columns, and labels from a separate file; ``named`` are further columns."""
    from ..tables import read_labels

    options.check()
    named = {**named, "--ids": options.ids, "--references": options.references, "--drop": ",".join(options.drop)}
    given = [option for option, column in named.items() if column]
    if given:
        name_columns = f"{given[0]} names one" if len(given) == 1 else f"{' and '.join(given)} name some"
        raise ValueError(
            f"{str(file)!r} holds one text per line and has no columns, but {name_columns}. Only a .csv, .tsv, .jsonl "
            "or .parquet file has columns. Give such a file with --text, or leave these options out."
        )
    separate = label_file(options.labels)
    if options.labels is not None and separate is None:
        raise ValueError(
            f"{str(file)!r} holds one text per line and has no columns, and there is no file {options.labels!r}. "
            "Labels come from a .npy, .npz, .csv, .tsv, .jsonl or .parquet file with one label per text. Give such a "
            "file, or leave --labels out."
        )
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(file)!r} is not a text file in UTF-8 ({error.reason}). Convert it.") from error
    texts = [line for line in lines if line.strip()]
    return texts, {} if separate is None else {"labels": read_labels(separate)}
