"""Exact search over codes: a flat scan, buckets of equal codes, multi-index hashing, classes with neighbors."""

from __future__ import annotations

from .base import CAPABILITIES, HammingIndex, Neighbors, RadiusNeighbors
from .buckets import BucketIndex
from .choice import load_index, make_index
from .hybrid import HybridIndex
from .multi import MultiIndex
from .residual import Reconstruction, ResidualIndex, VectorQueries
from .scan import FlatIndex

__all__ = [
    "BucketIndex",
    "CAPABILITIES",
    "FlatIndex",
    "HammingIndex",
    "HybridIndex",
    "MultiIndex",
    "Neighbors",
    "RadiusNeighbors",
    "Reconstruction",
    "ResidualIndex",
    "VectorQueries",
    "load_index",
    "make_index",
]
