"""``starshl encode``: codes of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, Drop, Input, Jobs, Model, Vectors, load_model, print_json

__all__ = ["encode", "encode_rows"]

CODE_FILES = (".npy", ".npz", ".csv")

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="CODES",
        help=".npy (packed bytes), .npz (packed bytes, n_bits and perhaps y) or .csv (a column of 0 and 1 a bit).",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", "-l", metavar="COLUMN", help="A column of labels: no feature, kept as y in an .npz."),
]


def encode(
    model: Model,
    input: Input,
    output: Output,
    labels: Labels = None,
    drop: Drop = None,
    vectors: Vectors = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Write the codes of rows.

    Bit j of a code is bit j % 8 of byte j // 8, the least significant first; padding bits are zero.
    """
    found = encode_rows(model, input, output, labels=labels, drop=drop, vectors=vectors, jobs=jobs)
    if as_json:
        print_json(found)
    else:
        size = f"{found['n_bits']} bits in {found['bytes_per_code']} bytes"
        typer.echo(f"{found['n_codes']:,} codes of {size} each, {found['n_distinct']:,} different: {output}")


def encode_rows(
    model: Path,
    source: Path,
    output: Path,
    *,
    labels: str | None = None,
    drop: list[str] | None = None,
    vectors: str | None = None,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Encode a file with a model file; return what `--json` prints."""
    import numpy as np

    from .io import check_output, rows_for, write_codes

    check_output(output, CODE_FILES)
    hasher = load_model(model, jobs)
    table = rows_for(hasher, source, labels=labels, drop=drop, vectors=vectors)
    codes = hasher.encode(table.X)
    write_codes(output, codes, table.y)
    return {
        "output": str(output),
        "n_codes": len(codes),
        "n_bits": codes.n_bits,
        "bytes_per_code": codes.packed.shape[1],
        "n_distinct": len(np.unique(codes.packed, axis=0)),
        "bit_order": "bit j is bit j % 8 of byte j // 8",
    }
