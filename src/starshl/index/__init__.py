"""Exact search over codes: a flat scan, buckets of equal codes, multi-index hashing, classes with neighbors."""

from .base import CAPABILITIES, HammingIndex, Neighbors, RadiusNeighbors
from .buckets import BucketIndex
from .choice import load_index, make_index
from .flat import FlatIndex
from .hybrid import HybridIndex
from .multi import MultiIndex
from .reconstruction import Reconstruction, VectorQueries
from .residual import ResidualIndex

__all__ = [
    "CAPABILITIES",
    "BucketIndex",
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
