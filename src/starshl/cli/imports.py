"""``starshl images``, ``starshl texts`` and ``starshl vectors``: a collection in one command, ready to serve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .index.common import busy, check_new_folder
from .options import (
    AsJson,
    Drop,
    Ids,
    Input,
    Jobs,
    Labels,
    NoLabels,
    Progress,
    References,
    Vectors,
    print_json,
    progress_shown,
    split_names,
)
from .rows import RowOptions, label_file, read_rows

if TYPE_CHECKING:
    from ..importing import ImportSummary
    from ..tables import Table

__all__ = ["images", "texts", "vectors"]

Pictures = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="A folder of JPEG, PNG and WebP pictures. The name of a subfolder is the label of the pictures in it; "
        "pictures at the top have no label.",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="COLLECTION", help="The folder to make; it must not exist yet.")
]
Bits = Annotated[
    int | None,
    typer.Option(
        "--bits", "-b", metavar="N", min=1, help="Length of the codes. By default, 32, or as many as the vectors allow."
    ),
]
Network = Annotated[
    bool,
    typer.Option(
        "--network",
        help="Let a neural network trained on photographs describe the pictures, which finds far more of the right "
        "kind. Needs pip install 'starshl[network]'.",
    ),
]
TextInput = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Texts to read: a .csv, .tsv, .jsonl or .parquet file with --text, or a .txt file with one text per line.",
    ),
]
TextColumn = Annotated[str | None, typer.Option("--text", "-t", metavar="COLUMN", help="The column of texts.")]
TitleColumn = Annotated[
    str | None, typer.Option("--title", metavar="COLUMN", help="The column to show as the name of an item.")
]

_LINES = ".txt"


def images(
    folder: Pictures,
    output: Output,
    bits: Bits = None,
    network: Network = False,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of the pictures in a folder.

    Each item gets features, a code and a preview; the names of subfolders become labels. Files that cannot be read are
    skipped and listed at the end.
    """
    from ..importing import import_pictures

    check_new_folder(output)
    shown = progress_shown(progress)
    _print(import_pictures(folder, output, n_bits=bits, network=network, n_jobs=jobs, progress=shown), as_json)


def texts(
    file: TextInput,
    output: Output,
    text: TextColumn = None,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Bits = None,
    title: TitleColumn = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of texts.

    Texts are described by the weights of their words. Other columns are kept as metadata.
    """
    from ..importing import import_texts

    check_new_folder(output)
    options = RowOptions(labels, no_labels, None, ids, references, split_names(drop))
    if file.suffix.lower() == _LINES:
        lines, about = _read_lines(file, options, {"--text": text, "--title": title})
    else:
        lines, about = _read_texts(file, text, options)
    with busy("making the collection", progress):
        summary = import_texts(lines, output, n_bits=bits, title=title, **about)
    _print(summary, as_json)


def vectors(
    file: Input,
    output: Output,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Bits = None,
    vectors: Vectors = None,
    title: TitleColumn = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of vectors and their codes.

    Other columns are kept as metadata.
    """
    from ..importing import import_vectors

    check_new_folder(output)
    table = read_rows(file, RowOptions(labels, no_labels, vectors, ids, references, split_names(drop)), as_items=True)
    with busy("making the collection", progress):
        summary = import_vectors(
            table.X,
            output,
            table.y,
            n_bits=bits,
            title=title,
            feature_names=table.feature_names,
            **_about_items(table),
        )
    _print(summary, as_json)


def _about_items(table: Table) -> dict[str, Any]:
    return {"ids": table.ids, "metadata": table.metadata, "references": table.references}


def _read_texts(file: Path, text: str | None, options: RowOptions) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a table and what belongs to them."""
    from dataclasses import replace

    from ..tables import Columns, read_labels, read_table

    if text is None:
        raise ValueError(
            f"{str(file)!r} is a table, and it is not clear which column holds the texts. Name it with --text."
        )
    options.check()
    named = options.columns()
    columns: Columns = replace(named, features=(text,), others="metadata", raw=True, allow_missing=True)
    table = read_table(file, columns)
    separate = label_file(options.labels)
    y = table.y if separate is None else read_labels(separate)
    # A cell that is not equal to itself is NaN: the mark of an empty one in Parquet.
    cells = ["" if cell is None or cell != cell else str(cell) for cell in table.X[:, 0].tolist()]
    return cells, {"labels": None if options.no_labels else y, "field": text, **_about_items(table)}


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


def _print(summary: ImportSummary, as_json: bool) -> None:
    if as_json:
        print_json(summary.as_dict())
    else:
        folder = summary.collection
        typer.echo(
            f"{summary.text()}\nLook at it with: starshl explore {folder}\nSearch it with: starshl serve {folder}"
        )
