"""Exact search over codes: a flat scan, buckets of equal codes, multi-index hashing, classes with neighbors."""

from __future__ import annotations

from .base import CAPABILITIES, HammingIndex, Neighbors, RadiusNeighbors
from .buckets import BucketIndex
from .choice import load_index, make_index
from .hybrid import HybridIndex
from .memory import FlatIndex, MemoryIndex
from .multi import MultiIndex
from .residual import Reconstruction, ResidualIndex, VectorQueries

__all__ = [
    "CAPABILITIES",
    "BucketIndex",
    "FlatIndex",
    "HammingIndex",
    "HybridIndex",
    "MemoryIndex",
    "MultiIndex",
    "Neighbors",
    "RadiusNeighbors",
    "Reconstruction",
    "ResidualIndex",
    "VectorQueries",
    "load_index",
    "make_index",
]
