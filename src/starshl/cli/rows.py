"""Rows and their labels as the options of a command describe them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

if TYPE_CHECKING:
    from ..data.tables.columns import Columns
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher


class CellOptions(TypedDict):
    """Options of :class:`~starshl.data.tables.Columns` about what cells may hold."""

    raw: bool
    allow_missing: bool
    numbers: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Options that say what each column is: ``labels`` is a column or a file."""

    labels: str | None = None
    no_labels: bool = False
    vectors: str | None = None
    ids: str | None = None
    references: str | None = None
    drop: tuple[str, ...] = ()
    raw: bool = False
    allow_missing: bool = False
    text: str | None = None
    decimal: str | None = None

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.labels is not None and self.no_labels:
            raise ValueError("--labels and --no-labels contradict each other. Leave one of them out.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal is {self.decimal!r}; decimals follow a point or a comma. Give one of these.")

    def columns(self) -> Columns:
        """Return what to read from the table."""
        from ..data.tables.columns import Columns

        from_file = label_file(self.labels) is not None
        return Columns(
            labels=None if from_file else self.labels,
            detect_labels=not from_file,
            vectors=self.vectors,
            ids=self.ids,
            references=self.references,
            drop=self.drop,
            raw=self.raw,
            allow_missing=self.allow_missing,
            text=self.text,
            decimal=self.decimal or ".",
        )


def read_rows(
    path: Path,
    options: RowOptions,
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

    options.check()
    columns = replace(options.columns(), features=feature_names(hasher), others="metadata" if as_items else "features")
    if hasher is not None:
        decimal = options.decimal or decimal_of(hasher)
        columns = replace(columns, decimal=decimal, **cells_taken_by(hasher))
    table = open_table(path, columns) if in_place else read_table(path, columns)
    return with_labels(table, options)


def read_partitions(source: str, options: RowOptions, hasher: BaseHasher | None = None) -> Table:
    """Open rows that are spread over files or behind URLs; none of them is read, only their labels are."""
    from ..data.tables.opening import open_partitions

    options.check()
    return with_labels(open_partitions(source, replace(options.columns(), features=feature_names(hasher))), options)


def with_labels(table: Table, options: RowOptions) -> Table:
    """Return a table without its labels, or with those of a separate file, if the options say so."""
    from ..data.tables.reading import read_labels

    if options.no_labels:
        return replace(table, y=None, label_column=None)
    file = label_file(options.labels)
    return table if file is None else replace(table, y=read_labels(file), label_column=str(file))


def is_in_file(table: Table) -> bool:
    """Tell whether the rows of a table are still in its file."""
    from ..data.tables.row_source import RowSource

    return isinstance(table.X, RowSource)


def decimal_of(hasher: BaseHasher) -> str:
    """Return what came before the decimals in the table that a hasher was fitted on; a point if that is not known."""
    return "," if getattr(hasher, "fit_record_", {}).get("decimal") == "," else "."


def cells_taken_by(hasher: BaseHasher) -> CellOptions:
    """Return what the first step of a prepared hasher takes besides finite numbers."""
    from sklearn.utils import get_tags

    from ..data.features.table import TableFeatures
    from ..hashers.prepared import PreparedHasher

    tags = get_tags(hasher).input_tags
    takes: CellOptions = {"raw": tags.string and tags.two_d_array, "allow_missing": tags.allow_nan, "numbers": None}
    steps = hasher.steps_ if isinstance(hasher, PreparedHasher) else []
    names = feature_names(hasher)
    if steps and isinstance(steps[0], TableFeatures) and names is not None:
        takes["numbers"] = tuple(names[j] for j in steps[0].number_columns_)
        # Gaps that nothing fills are refused by the hasher, too, but it does not know the file.
        takes["allow_missing"] = steps[0].impute or len(steps) > 1
    return takes


def is_url(text: str) -> bool:
    """Tell whether an argument is a URL."""
    return "://" in text


def label_file(labels: str | None) -> Path | None:
    """Return the file that --labels names, None if it names a column."""
    from ..data.tables.reading import READABLE

    if labels is None:
        return None
    path = Path(labels)
    return path if path.suffix.lower() in READABLE and path.is_file() else None


def feature_names(hasher: BaseHasher | None) -> tuple[str, ...] | None:
    """Return the names of the columns that a hasher was fitted on, None if they had none."""
    names = getattr(hasher, "feature_names_in_", None)
    return None if names is None else tuple(names)


# Texts as the options of a command describe them: a column of a table, or the lines of a file.

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
    options.check()
    named = options.columns()
    columns: Columns = replace(named, features=(text,), text=text, others="metadata", raw=True, allow_missing=True)
    table = with_labels(read_table(file, columns), options)
    # A cell that is not equal to itself is NaN: the mark of an empty one in Parquet.
    cells = ["" if cell is None or cell != cell else str(cell) for cell in table.X[:, 0].tolist()]
    return cells, {"labels": table.y, "field": text, **about_items(table)}


def _read_lines(file: Path, options: RowOptions, named: dict[str, str | None]) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a file without columns, and labels from a separate file; ``named`` are further columns."""
    from ..data.tables.reading import read_labels

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
