"""Rows, their labels and texts as the options of a command describe them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import split_names

if TYPE_CHECKING:
    from ..data.tables.columns import Columns
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

TextColumn = Annotated[str | None, typer.Option("--text", "-t", metavar="COLUMN", help="The column of texts.")]
#: The ending of a file with one text per line.
LINES = ".txt"


def row_columns(
    labels: str | None = None,
    no_labels: bool = False,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    references: str | None = None,
    drop: list[str] | None = None,
    decimal: str | None = None,
) -> Columns:
    """Return what the options of a command say about columns; ``labels`` is a column or a file."""
    from ..data.tables.columns import Columns

    if labels is not None and no_labels:
        raise ValueError("--labels and --no-labels contradict each other. Leave one of them out.")
    file = label_file(labels)
    return Columns(
        labels=labels if file is None else file,
        detect_labels=file is None,
        ignore_labels=no_labels,
        vectors=vectors,
        ids=ids,
        references=references,
        drop=split_names(drop),
        decimal=decimal,
    )


def read_rows(
    path: Path,
    columns: Columns,
    hasher: BaseHasher | None = None,
    *,
    as_items: bool = False,
    in_place: bool = False,
) -> Table:
    """Read rows, and labels from the same file or a separate one.

    A fitted ``hasher`` finds its columns by name, and gets missing values or text if its own steps take them.
    ``as_items`` turns columns that no option names into metadata. ``in_place`` leaves many rows in their file; see
    :func:`starshl.data.tables.open_table`.
    """
    from ..data.tables.opening import open_table
    from ..data.tables.reading import read_table
    from ..hashers.columns import columns_for

    columns = replace(columns, others="metadata" if as_items else "features")
    columns = columns if hasher is None else columns_for(hasher, columns)
    return open_table(path, columns) if in_place else read_table(path, columns)


def read_partitions(source: str, columns: Columns, hasher: BaseHasher | None = None) -> Table:
    """Open rows that are spread over files or behind URLs; none of them is read, only their labels are."""
    from ..data.tables.opening import open_partitions
    from ..hashers.columns import columns_for

    return open_partitions(source, columns if hasher is None else columns_for(hasher, columns))


def local_files(source: str) -> list[str]:
    """Return the files on this machine that a source of partitions names."""
    from ..data.tables.locations import is_url, list_locations
    from ..data.tables.opening import PARTITION_KINDS

    return [] if is_url(source) else list_locations(source, PARTITION_KINDS)


def is_in_file(table: Table) -> bool:
    """Tell whether the rows of a table are still in its file."""
    from ..data.tables.row_source import RowSource

    return isinstance(table.X, RowSource)


def label_file(labels: str | None) -> Path | None:
    """Return the file that --labels names, None if it names a column."""
    from ..data.tables.reading import READABLE

    if labels is None:
        return None
    path = Path(labels)
    return path if path.suffix.lower() in READABLE and path.is_file() else None


def read_texts(
    file: Path, text: str | None, columns: Columns, named: dict[str, str | None]
) -> tuple[list[str], dict[str, Any]]:
    """Return texts and what belongs to them: labels, ids, metadata and references, and the ``field`` they came from.

    ``named`` are the columns that further options name; a file of lines has none.
    """
    return _read_lines(file, columns, named) if file.suffix.lower() == LINES else _read_table(file, text, columns)


def about_items(table: Table) -> dict[str, Any]:
    """Return what belongs to the rows of a table, as a collection takes it."""
    return {"ids": table.ids, "metadata": table.metadata, "references": table.references}


def _read_table(file: Path, text: str | None, columns: Columns) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a table and what belongs to them."""
    from ..data.tables.reading import READABLE, read_table

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
    columns = replace(columns, features=(text,), text=text, others="metadata", raw=True, allow_missing=True)
    table = read_table(file, columns)
    # A cell that is not equal to itself is NaN: the mark of an empty one in Parquet.
    cells = ["" if cell is None or cell != cell else str(cell) for cell in table.X[:, 0].tolist()]
    return cells, {"labels": table.y, "field": text, **about_items(table)}


def _read_lines(file: Path, columns: Columns, named: dict[str, str | None]) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a file without columns, and labels from a separate file; ``named`` are further columns."""
    from ..data.tables.reading import read_labels

    named = {**named, "--ids": columns.ids, "--references": columns.references, "--drop": ",".join(columns.drop)}
    given = [option for option, column in named.items() if column]
    if given:
        name_columns = f"{given[0]} names one" if len(given) == 1 else f"{' and '.join(given)} name some"
        raise ValueError(
            f"{str(file)!r} holds one text per line and has no columns, but {name_columns}. Only a .csv, .tsv, .jsonl "
            "or .parquet file has columns. Give such a file with --text, or leave these options out."
        )
    separate = columns.label_file
    if columns.label_column is not None:
        raise ValueError(
            f"{str(file)!r} holds one text per line and has no columns, and there is no file {columns.label_column!r}. "
            "Labels come from a .npy, .npz, .csv, .tsv, .jsonl or .parquet file with one label per text. Give such a "
            "file, or leave --labels out."
        )
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(file)!r} is not a text file in UTF-8 ({error.reason}). Convert it.") from error
    texts = [line for line in lines if line.strip()]
    return texts, {} if separate is None else {"labels": read_labels(separate, len(texts))}
