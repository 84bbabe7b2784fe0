"""Training, encoding and search on a Dask cluster, through the extra ``dask``."""

from __future__ import annotations

from .code_folder import load_codes, read_manifest
from .encoding import encode
from .engine import local_cluster
from .sharded_collection import ShardedCollection
from .sharded_index import ShardedIndex
from .training import fit

__all__ = [
    "ShardedCollection",
    "ShardedIndex",
    "encode",
    "fit",
    "load_codes",
    "local_cluster",
    "read_manifest",
]
