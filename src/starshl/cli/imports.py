"""``starshl images``, ``starshl texts`` and ``starshl vectors``: a collection in one command, ready to serve."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._common.words import counted
from .index.common import (
    LabelsFromFolders,
    busy,
    check_new_folder,
    folder_lines,
    left_out_lines,
    level_of_labels,
)
from .options import (
    AsJson,
    Decimal,
    Drop,
    Ids,
    Input,
    Jobs,
    KeptFeatures,
    Labels,
    NoLabels,
    Progress,
    References,
    Vectors,
    keep_features,
    print_json,
    progress_shown,
)
from .rows import TextColumn, about_items, read_rows, read_texts, row_columns

if TYPE_CHECKING:
    from ..collection.importing.building import ImportSummary

Pictures = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="A folder of JPEG, PNG, WebP, GIF, BMP and TIFF pictures. The name of a subfolder is the label of the "
        "pictures in it; pictures at the top have no label.",
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
PictureEmbedder = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="What makes vectors of pictures: pixels; efficientnet-lite0, a network trained on photographs, which "
        "finds far more of the right kind; or onnx:FOLDER, a network of your own.",
    ),
]
TextEmbedder = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="What makes vectors of texts: tfidf, weights of their words; minilm, a network of sentences; or one of "
        "your own, as onnx:FOLDER or sentence-transformers:NAME.",
    ),
]
TextInput = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Texts to read: a .csv, .tsv, .jsonl or .parquet file with --text, or a .txt file with one text per line.",
    ),
]
TitleColumn = Annotated[
    str | None, typer.Option("--title", metavar="COLUMN", help="The column to show as the name of an item.")
]


def images(
    folder: Pictures,
    output: Output,
    labels_from: LabelsFromFolders = None,
    bits: Bits = None,
    embedder: PictureEmbedder = "pixels",
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of the pictures in a folder.

    Each item gets features, a code and a preview; the names of subfolders become labels. Files that cannot be read are
    skipped and listed at the end.
    """
    with busy("starting", progress):
        from ..collection.importing.pictures import import_pictures

    check_new_folder(output)
    shown = progress_shown(progress)
    summary = import_pictures(
        folder,
        output,
        labels_from="inner" if labels_from is None else level_of_labels(labels_from),
        n_bits=bits,
        embedder=embedder,
        n_jobs=jobs,
        progress=shown,
    )
    _print(summary, as_json, labels_from)


def texts(
    file: TextInput,
    output: Output,
    text: TextColumn = None,
    labels: Labels = None,
    no_labels: NoLabels = False,
    embedder: TextEmbedder = "tfidf",
    bits: Bits = None,
    title: TitleColumn = None,
    ids: Ids = None,
    references: References = None,
    drop: Drop = None,
    decimal: Decimal = None,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of texts.

    The embedder makes vectors of them. Other columns are kept as metadata.
    """
    with busy("starting", progress):
        from ..collection.importing.texts import import_texts

    check_new_folder(output)
    columns = row_columns(labels, no_labels, ids=ids, references=references, drop=drop, decimal=decimal)
    lines, about = read_texts(file, text, columns, {"--text": text, "--title": title})
    shown = progress_shown(progress)
    summary = import_texts(
        lines, output, embedder=embedder, n_bits=bits, title=title, n_jobs=jobs, progress=shown, **about
    )
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
    decimal: Decimal = None,
    metadata: KeptFeatures = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection of vectors and their codes.

    Other columns are kept as metadata, and those that --metadata names.
    """
    with busy("starting", progress):
        from ..collection.importing.vectors import import_vectors

    check_new_folder(output)
    columns = row_columns(
        labels, no_labels, vectors=vectors, ids=ids, references=references, drop=drop, decimal=decimal
    )
    table = read_rows(file, columns, as_items=True)
    table = keep_features(table, metadata)
    summary = import_vectors(
        table.X,
        output,
        table.y,
        n_bits=bits,
        title=title,
        feature_names=table.feature_names,
        progress=progress_shown(progress),
        **about_items(table),
    )
    _print(summary, as_json)


def _print(summary: ImportSummary, as_json: bool, labels_from: str | None = None) -> None:
    if as_json:
        print_json(summary.as_dict())
        return
    folder = summary.collection
    lines = [
        f"{counted(summary.n_items, summary.kind[:-1])} in {folder}, in {summary.seconds:.1f} s.",
        summary.labels,
        *folder_lines(summary, labels_from),
        *([summary.cut] if summary.cut else []),
        f"Vectors: {summary.features}, {counted(summary.n_features, 'number')}. "
        f"Codes: {counted(summary.n_bits, 'bit')}.",
        summary.choice,
        *left_out_lines(summary.n_other_files, summary.skipped),
        f"Search it here: starshl index search {folder} ...",
        f"Look at it in a browser: starshl explore {folder}",
        f"Serve it to programs: starshl serve {folder}",
    ]
    if find_spec("fastapi") is None:
        lines.append("The last two need: pip install 'starshl[serve]'")
    typer.echo("\n".join(lines))
