"""Codes in FAISS, PostgreSQL, Milvus and Parquet files; each needs the extra of its library.

Names are imported on first use, so that the others need not be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._common.lazy import on_first_use

if TYPE_CHECKING:
    from .faiss_index import FaissIndex, from_faiss, to_faiss
    from .milvus_index import MilvusIndex
    from .parquet_table import DUCKDB_NEAREST, read_parquet, write_parquet
    from .pgvector_index import PgvectorIndex

__all__ = [
    "DUCKDB_NEAREST",
    "FaissIndex",
    "MilvusIndex",
    "PgvectorIndex",
    "from_faiss",
    "read_parquet",
    "to_faiss",
    "write_parquet",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "faiss_index": ["FaissIndex", "from_faiss", "to_faiss"],
        "milvus_index": ["MilvusIndex"],
        "parquet_table": ["DUCKDB_NEAREST", "read_parquet", "write_parquet"],
        "pgvector_index": ["PgvectorIndex"],
    },
)
