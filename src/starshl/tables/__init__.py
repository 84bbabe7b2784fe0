"""Tables from files: rows to learn from or to encode, with labels, ids, references and metadata."""

from .array_rows import RemoteRows, ZarrRows
from .columns import Columns
from .errors import ColumnWarning, TableError
from .joined_rows import JoinedRows, Partition
from .kept_features import with_kept_features
from .locations import Location, fingerprint, is_url
from .opening import open_table
from .partitions import open_partitions
from .reading import READABLE, Table, check_readable, read_labels, read_table, read_vectors
from .row_source import ArrayRows, ParquetRows, RowSource

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
