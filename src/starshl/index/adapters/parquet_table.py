"""Codes in Parquet files, which DuckDB, Spark, Polars and pandas read.

Bit j of a code is bit ``j % 8``, counted from the least significant, of byte ``j // 8`` of the column
``code``; unused bits of the last byte are zero. The file's metadata says so, how many bits there are, and which space
the codes are of. Other programs know the Hamming distance only. Hybrid codes are for keeping; a collection of them has
another column, ``hamming_code``, for searching.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._common.extras import require
from ..._common.files import replacing_file
from ...codes.binary import BIT_ORDER, BinaryCodes, n_bytes
from ...exceptions import AdapterError
from ..base import check_ids

pyarrow = require("pyarrow", extra="parquet")
parquet = require("pyarrow.parquet", extra="parquet")
#: Types of further columns, by the names that Python has for them.
_TYPES = {
    "int": pyarrow.int64(),
    "float": pyarrow.float64(),
    "str": pyarrow.string(),
    "bool": pyarrow.bool_(),
    "bytes": pyarrow.binary(),
}
#: The k nearest items in DuckDB; parameters: the query's ``packed`` bytes, the file name, k.
DUCKDB_NEAREST = """
SELECT id, bit_count(xor(code::BIT, $query::BLOB::BIT)) AS distance
FROM read_parquet($path) ORDER BY distance, id LIMIT $k
"""


def write_parquet(
    path: str | os.PathLike[str],
    codes: BinaryCodes,
    ids: ArrayLike | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    types: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the columns ``id``, ``code`` and any others; the file is complete or absent.

    ``types`` of other columns are "int", "float", "str", "bool" or "bytes"; without one, the values decide.
    """
    ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
    packed = pyarrow.array([code.tobytes() for code in codes.packed], pyarrow.binary(codes.packed.shape[1]))
    others = {name: pyarrow.array(values, _TYPES.get(types.get(name, ""))) for name, values in (columns or {}).items()}
    table = pyarrow.table({"id": pyarrow.array(ids, pyarrow.int64()), "code": packed, **others})
    description = {"n_bits": str(codes.n_bits), "bit_order": BIT_ORDER, "metric": codes.metric}
    if codes.space_id is not None:
        description["space_id"] = codes.space_id
    table = table.replace_schema_metadata({f"starshl.{name}": text for name, text in description.items()})
    with replacing_file(path) as file:
        parquet.write_table(table, file)


def read_parquet(path: str | os.PathLike[str]) -> tuple[BinaryCodes, np.ndarray]:
    """Return codes, with their space, and ids of a file written by :func:`write_parquet`."""
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise AdapterError(f"{os.fspath(path)!r} is not a readable Parquet file ({error}).") from error
    metadata = {name.decode(): text.decode() for name, text in (table.schema.metadata or {}).items()}
    if metadata.get("starshl.bit_order") != BIT_ORDER or "code" not in table.column_names:
        raise AdapterError(
            f"{os.fspath(path)!r} does not say that its codes have starshl's bit order. Pack its bits "
            "yourself and use BinaryCodes."
        )
    n_bits = int(metadata["starshl.n_bits"])
    content = b"".join(table.column("code").to_pylist())
    packed = np.frombuffer(content, np.uint8).reshape(len(table), n_bytes(n_bits))
    codes = BinaryCodes(packed, n_bits, metadata.get("starshl.space_id"), metadata.get("starshl.metric", "hamming"))
    return codes, table.column("id").to_numpy().astype(np.int64)
