"""Export of a collection to files that other programs read: Parquet and JSON lines.

Codes leave as packed bytes: bit j of a code is bit ``j % 8``, counted from the least significant, of byte
``j // 8``; unused bits of the last byte are zero. In DuckDB, for a query packed in the same way::

    SELECT id, bit_count(xor(code::BIT, ?::BLOB::BIT)) AS distance
    FROM 'items.parquet' ORDER BY distance, id LIMIT 10
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from .._extras import require
from .._files import replacing_file
from .store import Row

__all__ = ["write_rows"]

BIT_ORDER = "bit j of a code is bit j % 8 (least significant first) of byte j // 8"


def write_rows(path: str | os.PathLike, rows: Sequence[Row], n_bits: int) -> None:
    """Write rows to a file whose ending says how; it is complete or not there."""
    writers = {".parquet": _write_parquet, ".jsonl": _write_json_lines}
    ending = Path(path).suffix
    if ending not in writers:
        raise ValueError(f"The file name ends in {ending!r}; use {' or '.join(writers)}.")
    writers[ending](path, rows, n_bits)


def _write_json_lines(path, rows: Sequence[Row], n_bits: int) -> None:
    with replacing_file(path) as file:
        for row in rows:
            entry = {
                "id": row.id,
                "code": row.code.hex(),
                "n_bits": n_bits,
                "reference": row.reference,
                "metadata": json.loads(row.metadata),
            }
            file.write(json.dumps(entry).encode() + b"\n")


def _write_parquet(path, rows: Sequence[Row], n_bits: int) -> None:
    pyarrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    table = pyarrow.table(
        {
            "id": pyarrow.array([row.id for row in rows], pyarrow.int64()),
            "code": pyarrow.array([row.code for row in rows], pyarrow.binary(-(-n_bits // 8))),
            "reference": pyarrow.array([row.reference for row in rows], pyarrow.string()),
            "metadata": pyarrow.array([row.metadata for row in rows], pyarrow.string()),
        }
    ).replace_schema_metadata({"starshl.n_bits": str(n_bits), "starshl.bit_order": BIT_ORDER})
    with replacing_file(path) as file:
        parquet.write_table(table, file)
