"""What the index commands share: opening a collection, encoding items, queries of all kinds, and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..._common.words import counted
from ..options import check_output_folder, progress_shown
from ..rows import LINES, read_texts

if TYPE_CHECKING:
    from ...codes.binary import BinaryCodes
    from ...collection.collection import Collection
    from ...collection.importing.building import AdditionSummary, ImportSummary, Skipped
    from ...data.tables.columns import Columns
    from ...data.tables.reading import Table
    from ...hashers.base import BaseHasher

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the collection.")]
ItemIds = Annotated[list[int], typer.Argument(metavar="ID...", help="Ids of items; write -- before negative ones.")]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="float16|int8",
        help="Keep the vectors, too, with two bytes or one per number: searches then order what the codes find by "
        "exact distance.",
    ),
]
LabelsFromFolders = Annotated[
    str | None,
    typer.Option(
        "--labels-from",
        metavar="inner|outer|path|N",
        help="Which of several nested folders is the label: the innermost, the outermost, the whole path, or the one "
        "at level N, where 1 is the outermost; by default, the innermost, or what the collection began with. Folders "
        "train, test and val side by side are splits, not labels.",
    ),
]
_OF_VECTORS = (".npy", ".npz")  # files that cannot hold texts here
_ROWS_PER_STEP = 2048  # between two steps of the progress bar
_SKIPPED_SHOWN = 10  # files listed on the screen


def check_new_folder(folder: Path) -> None:
    """Refuse a folder for a new collection that exists or cannot be made."""
    from ..._common.files import refuse_existing

    refuse_existing(folder, "Choose another folder, or use `starshl index add`.")
    check_output_folder(folder)


def open_collection(folder: Path, *, read_only: bool = False, n_jobs: int | None = None) -> Collection:
    """Open a collection, whose code is imported only now."""
    from ...collection.collection import Collection

    return Collection(folder, read_only=read_only, n_jobs=n_jobs)


def encode_items(hasher: BaseHasher, table: Table, progress: bool | None) -> BinaryCodes:
    """Encode items in steps, with a progress bar on standard error."""
    import numpy as np

    from ..._common.progress import row_progress
    from ..._common.threads import tiles

    packed, n_rows = [], table.X.shape[0]
    with row_progress("encoding", n_rows, shown=progress_shown(progress)) as report:
        for rows in tiles(n_rows, _ROWS_PER_STEP):
            packed.append(hasher.encode_database(table.X[rows]).packed)
            report(len(packed[-1]))
    return hasher.as_codes(np.concatenate(packed))


def busy(what: str, progress: bool | None) -> AbstractContextManager[object]:
    """Show a sign of life on standard error during work of unknown length."""
    from ..._common.progress import status

    return status(what, shown=progress_shown(progress))


def feature_columns(table: Table) -> list[str] | None:
    """Return the columns that the vectors came from, None if the file has none."""
    if table.feature_names:
        return list(table.feature_names)
    return [table.vectors] if table.vectors else None


def origin(table: Table) -> str:
    """Say which columns the vectors came from, if the file has columns."""
    if table.feature_names:
        names, n = table.feature_names, len(table.feature_names)
        shown = ", ".join(names) if n <= 5 else f"{', '.join(names[:4])}, ..., {names[-1]}"
        return f"; vectors from {counted(n, 'column')}: {shown}"
    return f"; vectors from {table.vectors}" if table.vectors else ""


def level_of_labels(text: str | None) -> Any:
    """Return what --labels-from says, as the library takes it; None if it was not given."""
    return int(text) if text is not None and text.isdecimal() else text


def folder_lines(summary: ImportSummary | AdditionSummary, labels_from: str | None) -> list[str]:
    """Say which folders are labels, and how to take others if nobody has chosen; nothing if there was no choice."""
    if not summary.folders:
        return []
    others = " Others: --labels-from outer, path or N, a level from the top."
    return [summary.folders + (others if labels_from is None and summary.n_folder_levels > 1 else "")]


def left_out_lines(n_other_files: int, skipped: Sequence[Skipped]) -> list[str]:
    """Say which files were left out of an import, nothing if none were."""
    lines = [f"{counted(n_other_files, 'file')} of other kinds left alone."] if n_other_files else []
    if skipped:
        lines.append(f"{counted(len(skipped), 'file')} skipped:")
        lines += [f"  {each.reason}" for each in skipped[:_SKIPPED_SHOWN]]
        if len(skipped) > _SKIPPED_SHOWN:
            lines.append(f"  and {len(skipped) - _SKIPPED_SHOWN:,} more; --json lists all.")
    return lines


def parsed_labels(texts: list[str] | None, kind: str | None) -> list[str | int | bool] | None:
    """Return labels from the command line as those of the kind that a collection has, None if none are given."""
    return [_parsed(text, kind) for text in texts] if texts else None


def _parsed(text: str, kind: str | None) -> str | int | bool:
    from ...collection.labels import label_from_text

    try:
        return label_from_text(text, kind or "numbers")
    except ValueError:
        if kind is not None:
            raise
        return text  # the first label of a collection, which decides what the others are


def print_answer(answer: dict[str, Any], text: str, as_json: bool) -> None:
    """Print an answer as one line of JSON, or as text."""
    typer.echo(json.dumps(answer) if as_json else text)


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Where the queries of a search come from: a file, texts, pictures, or stored items."""

    input: Path | None
    items: list[int] | None
    texts: list[str] | None
    pictures: list[Path] | None
    columns: Columns
    text_column: str | None = None

    def check(self) -> None:
        """Refuse no query, and queries of several kinds."""
        if sum(map(bool, (self.input, self.items, self.texts, self.pictures))) != 1:
            raise ValueError("Give one kind of query: a file, --text, --picture, or --item, the id of a stored item.")

    def rows(self, collection: Collection) -> Any:
        """Return the queries as rows for the hasher of a collection, None if they are stored items."""
        if self.items:
            return None
        if self.texts:
            _check_takes(collection, "texts")
            return collection.embed(self.texts)
        pictures = self.pictures or ([] if self.input is None else [self.input])
        if self.pictures or holds_pictures(collection, pictures):
            return picture_rows(collection, pictures)[0]
        assert self.input is not None
        if holds_texts(collection, self.input, self.columns.vectors):
            return collection.embed(self._texts_of_file(self.input, collection))
        return _read_vectors(self.input, self.columns, collection)

    def _texts_of_file(self, input: Path, collection: Collection) -> list[str]:
        from ...collection.importing.texts import text_field

        column = self.text_column or text_field(collection)
        texts, _ = read_texts(input, column, self.columns, {"--text-column": self.text_column})
        return texts


def holds_texts(collection: Collection, input: Path, vectors: str | None) -> bool:
    """Return whether a file holds texts for a collection of texts: not vectors by its ending or by an option."""
    if input.suffix.lower() == LINES:
        _check_takes(collection, "texts")
        return True
    takes_texts = collection.kind == "texts" and collection.embedder is not None
    return takes_texts and vectors is None and input.suffix.lower() not in _OF_VECTORS


def holds_pictures(collection: Collection, inputs: Sequence[Path]) -> bool:
    """Return whether these are pictures or folders; a collection that takes none refuses them."""
    from ...data.features.picture_files import is_picture_file

    if not any(path.is_dir() or is_picture_file(path) for path in inputs):
        return False
    _check_takes(collection, "pictures")
    return True


def picture_rows(collection: Collection, paths: Sequence[Path]) -> tuple[Any, list[str | None]]:
    """Return what the embedder of a collection makes of pictures and of all in folders, and their paths in these."""
    from ...collection.importing.picture_folders import collect_pictures

    _check_takes(collection, "pictures")
    files, _ = collect_pictures(paths)
    return collection.embed([file.path for file in files]), [file.reference for file in files]


def _read_vectors(input: Path, columns: Columns, collection: Collection) -> Any:
    from ...data.tables.reading import read_vectors
    from ...hashers.columns import columns_for

    columns = columns_for(collection.hasher, replace(columns, others="metadata"))
    with holding_vectors(collection, input) as check:
        rows = read_vectors(input, columns)
        check(rows)
    return embedded_rows(collection, rows)


def embedded_rows(collection: Collection, rows: Any) -> Any:
    """Return what the embedder of a collection of rows makes of those of a file, and other rows as they are."""
    return collection.embed(rows) if collection.kind == "rows" else rows


@contextmanager
def holding_vectors(collection: Collection, input: Path) -> Iterator[Callable[[Any], None]]:
    """Say what a file is and what a collection of pictures takes if the file holds no vectors for it.

    Reading happens inside the block, which gets a function that checks the rows. Other collections get the message
    about the table as it is.
    """
    from ..._common.files import file_kind
    from ...data.features.picture_files import KINDS

    if collection.kind != "pictures" or collection.embedder is None:
        yield lambda rows: None
        return
    if not input.exists():
        raise FileNotFoundError(f"There is no file or folder {str(input)!r}. Give pictures, or a folder of them.")
    width = collection.hasher.n_features_in_

    def check(rows: Any) -> None:
        if rows.shape[1] != width:
            raise ValueError(f"rows of {rows.shape[1]} numbers")

    try:
        yield check
    except ValueError as error:
        what = file_kind(input) or "of a kind that is not known here"
        raise ValueError(
            f"{str(input)!r} is {what}, and holds no vectors of {width} numbers. The items of this collection are "
            f"pictures: it takes {KINDS} files, folders of them, or a table of such vectors. Give one of these."
        ) from error


def _check_takes(collection: Collection, kind: str) -> None:
    if kind in collection.takes:
        return
    named = {"texts": "texts, in a table or a .txt file", "pictures": "pictures, folders of pictures"}
    takes = [named[each] for each in collection.takes if each in named]
    files = "in a .npy, .npz, .csv, .tsv, .jsonl or .parquet file"
    takes.append(f"{'rows' if collection.kind == 'rows' else 'vectors'}, {files}")
    raise ValueError(
        f"The items of this collection are {collection.kind}, so it takes no {kind}. It takes {', or '.join(takes)}."
    )
