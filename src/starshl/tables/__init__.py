"""Tables from files: rows to learn from or to encode, with labels, ids, references and metadata."""

from .columns import Columns
from .errors import ColumnWarning, TableError
from .reading import READABLE, Table, check_readable, read_labels, read_table, read_vectors

__all__ = [
    "READABLE",
    "ColumnWarning",
    "Columns",
    "Table",
    "TableError",
    "check_readable",
    "read_labels",
    "read_table",
    "read_vectors",
]
