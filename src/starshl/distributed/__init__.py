"""Training, encoding and search on a Dask cluster, through the extra ``dask``."""

from .code_folder import load_codes, read_manifest
from .connection import local_cluster
from .encoding import encode

__all__ = ["encode", "load_codes", "local_cluster", "read_manifest"]
