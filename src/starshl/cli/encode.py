"""``starshl encode``: codes of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._common.words import counted
from .cluster import Cluster, encode_on_cluster
from .options import (
    AsJson,
    Decimal,
    Drop,
    Jobs,
    Labels,
    Model,
    NoLabels,
    Progress,
    Source,
    Vectors,
    check_output,
    load_model,
    print_json,
    progress_shown,
    without_objects,
)
from .rows import read_rows, row_columns

if TYPE_CHECKING:
    import numpy as np

    from ..codes.binary import BinaryCodes
    from ..data.tables.columns import Columns
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="CODES",
        help=".npy (packed bytes), .npz (packed bytes, n_bits, and y if there are labels) or .csv (one column of 0 "
        "and 1 per bit); with --cluster, a folder.",
    ),
]
Database = Annotated[
    bool,
    typer.Option(
        "--database",
        help="Write codes for items to be searched, not for queries. With StarRidge, an item that comes with a label "
        "gets the codeword of that label.",
    ),
]
OneFile = Annotated[
    bool, typer.Option("--one-file", help="With --cluster: also write all codes into one file, codes.npy.")
]

_CODE_FILES = (".npy", ".npz", ".csv")
_CSV_BLOCK = 10_000  # rows that are text in memory at a time


def encode(
    model: Model,
    input: Source,
    output: Output,
    labels: Labels = None,
    no_labels: NoLabels = False,
    database: Database = False,
    drop: Drop = None,
    decimal: Decimal = None,
    vectors: Vectors = None,
    progress: Progress = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    one_file: OneFile = False,
    as_json: AsJson = False,
) -> None:
    """Write the codes of rows.

    Labels that come with the rows are kept as y in an .npz. A .npy or .parquet file with more than 20,000 rows is read
    block by block, so it may be larger than memory.

    With --cluster, the codes go to a folder: packed bytes, one .npy per partition of 65,536 rows, and manifest.json.
    After an interruption, run the same command again, and it goes on where it stopped.

    Bit j of a code is bit j % 8 of byte j // 8, the least significant first; padding bits are zero.
    """
    columns = row_columns(labels, no_labels, vectors=vectors, drop=drop, decimal=decimal)
    shown = progress_shown(progress)
    if cluster is not None:
        summary = encode_on_cluster(
            model, input, output, columns, cluster, database=database, one_file=one_file, progress=shown
        )
    elif one_file:
        raise ValueError(
            "--one-file is for --cluster; without a cluster, all codes are in one file anyway. Leave --one-file out."
        )
    else:
        summary = encode_rows(model, Path(input), output, columns, database=database, jobs=jobs, progress=shown)
    if as_json:
        print_json(summary)
    else:
        size = f"{counted(summary['n_bits'], 'bit')} in {counted(summary['bytes_per_code'], 'byte')}"
        found = f"{summary['n_distinct']:,} different" if cluster is None else counted(summary["n_partitions"], "file")
        typer.echo(f"{counted(summary['n_codes'], 'code')} of {size} each, {found}: {output}")


def encode_rows(
    model: Path,
    source: Path,
    output: Path,
    columns: Columns,
    *,
    database: bool = False,
    jobs: int | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Encode a file with a model file; return what `--json` prints."""
    import numpy as np

    check_output(output, [model, source, columns.label_file], suffixes=_CODE_FILES)
    hasher = load_model(model, jobs)
    table = read_rows(source, columns, hasher, in_place=True)
    codes = encode_table(hasher, table, database=database, progress=progress)
    _write_codes(output, codes, table.y)
    return {
        "output": str(output),
        "codes_of": "database" if database else "queries",
        "n_codes": len(codes),
        "n_bits": codes.n_bits,
        "bytes_per_code": codes.packed.shape[1],
        "n_distinct": len(np.unique(codes.packed, axis=0)),
        "bit_order": "bit j is bit j % 8 of byte j // 8",
    }


def encode_table(hasher: BaseHasher, table: Table, *, database: bool, progress: bool = False) -> BinaryCodes:
    """Return the codes of a table; rows that are still in its file are read block by block."""
    import numpy as np

    from .._common.progress import row_progress
    from ..data.tables.row_source import RowSource
    from ..hashers.fitting import encode_blocks

    rows: Any = table.X
    if not isinstance(rows, RowSource):
        return hasher.encode_database(rows, table.y) if database else hasher.encode(rows)
    with row_progress("encoding", len(rows), shown=progress) as report:
        return encode_blocks(hasher, rows, np.arange(len(rows)), table.y, database=database, report=report)


def _write_codes(path: Path, codes: BinaryCodes, y: np.ndarray | None = None) -> None:
    """Write codes: .npy packed bytes; .npz ``packed``, ``n_bits`` and perhaps ``y``; .csv one column per bit."""
    import numpy as np

    from .._common.files import replacing_file
    from .._common.threads import tiles

    with replacing_file(path) as file:
        if path.suffix.lower() == ".npy":
            np.save(file, codes.packed, allow_pickle=False)
        elif path.suffix.lower() == ".npz":
            extra = {} if y is None else {"y": without_objects(y)}
            arrays = {"packed": codes.packed, "n_bits": np.asarray(codes.n_bits, np.int64), **extra}
            np.savez(file, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes any name for an option
        else:
            header = ",".join(f"bit_{j}" for j in range(codes.n_bits))
            file.write(f"{header}\n".encode())
            for rows in tiles(len(codes), _CSV_BLOCK):
                np.savetxt(file, codes[rows].to_signs() > 0, fmt="%d", delimiter=",")
