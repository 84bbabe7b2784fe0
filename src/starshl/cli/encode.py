"""``starshl encode``: codes of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, Drop, Input, Jobs, Labels, Model, NoLabels, Vectors, load_model, print_json, split_names
from .outputs import CODE_FILES, check_output, write_codes
from .rows import RowOptions, label_file, read_rows

__all__ = ["encode", "encode_rows"]

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="CODES",
        help=".npy (packed bytes), .npz (packed bytes, n_bits and perhaps y) or .csv (one column of 0 and 1 per bit).",
    ),
]
Database = Annotated[
    bool,
    typer.Option(
        "--database",
        help="Write codes of items to be searched; without it, codes of queries. Items of StarRidge that come with "
        "a label get the codeword of that label.",
    ),
]


def encode(
    model: Model,
    input: Input,
    output: Output,
    labels: Labels = None,
    no_labels: NoLabels = False,
    database: Database = False,
    drop: Drop = None,
    vectors: Vectors = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Write the codes of rows; labels that come with them are kept as y in an .npz.

    Bit j of a code is bit j % 8 of byte j // 8, the least significant first; padding bits are zero.
    """
    options = RowOptions(labels, no_labels, vectors, drop=split_names(drop))
    summary = encode_rows(model, input, output, options, database=database, jobs=jobs)
    if as_json:
        print_json(summary)
    else:
        n_bytes = summary["bytes_per_code"]
        size = f"{summary['n_bits']} bits in {n_bytes} byte{'s' if n_bytes > 1 else ''}"
        typer.echo(f"{summary['n_codes']:,} codes of {size} each, {summary['n_distinct']:,} different: {output}")


def encode_rows(
    model: Path, source: Path, output: Path, options: RowOptions, *, database: bool = False, jobs: int | None = None
) -> dict[str, Any]:
    """Encode a file with a model file; return what `--json` prints."""
    import numpy as np

    check_output(output, [model, source, label_file(options.labels)], suffixes=CODE_FILES)
    hasher = load_model(model, jobs)
    table = read_rows(source, options, hasher)
    codes = hasher.encode_database(table.X, table.y) if database else hasher.encode(table.X)
    if table.y is not None and len(table.y) != len(codes):
        raise ValueError(
            f"There are {len(codes)} rows and {len(table.y)} labels in {table.label_column!r}. Give one label per row."
        )
    write_codes(output, codes, table.y)
    return {
        "output": str(output),
        "codes_of": "database" if database else "queries",
        "n_codes": len(codes),
        "n_bits": codes.n_bits,
        "bytes_per_code": codes.packed.shape[1],
        "n_distinct": len(np.unique(codes.packed, axis=0)),
        "bit_order": "bit j is bit j % 8 of byte j // 8",
    }
