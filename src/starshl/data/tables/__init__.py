"""Tables from files: rows to learn from or to encode, with labels, ids, references and metadata."""

from __future__ import annotations

from .columns import Columns
from .errors import ColumnWarning, TableError
from .locations import Location, fingerprint, is_url
from .opening import open_partitions, open_table
from .reading import READABLE, Table, check_readable, read_labels, read_table, read_vectors, with_kept_features
from .row_source import ArrayRows, JoinedRows, ParquetRows, Partition, RemoteRows, RowSource, ZarrRows

__all__ = [
    "READABLE",
    "ArrayRows",
    "ColumnWarning",
    "Columns",
    "JoinedRows",
    "Location",
    "ParquetRows",
    "Partition",
    "RemoteRows",
    "RowSource",
    "Table",
    "TableError",
    "ZarrRows",
    "check_readable",
    "fingerprint",
    "is_url",
    "open_partitions",
    "open_table",
    "read_labels",
    "read_table",
    "read_vectors",
    "with_kept_features",
]
