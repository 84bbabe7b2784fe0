"""Tables from files: rows to learn from or to encode, with labels, ids, references and metadata."""

from .columns import Columns
from .errors import ColumnWarning, TableError
from .opening import open_table
from .reading import READABLE, Table, check_readable, read_labels, read_table, read_vectors
from .row_source import ArrayRows, ParquetRows, RowSource

__all__ = [
    "READABLE",
    "ArrayRows",
    "ColumnWarning",
    "Columns",
    "ParquetRows",
    "RowSource",
    "Table",
    "TableError",
    "check_readable",
    "open_table",
    "read_labels",
    "read_table",
    "read_vectors",
]
