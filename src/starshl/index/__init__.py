"""Exact search over codes: a flat scan, buckets of equal codes, multi-index hashing for small radii."""

from .base import CAPABILITIES, HammingIndex, Neighbors, RadiusNeighbors
from .buckets import BucketIndex
from .choice import load_index, make_index
from .flat import FlatIndex
from .multi import MultiIndex

__all__ = [
    "CAPABILITIES",
    "BucketIndex",
    "FlatIndex",
    "HammingIndex",
    "MultiIndex",
    "Neighbors",
    "RadiusNeighbors",
    "load_index",
    "make_index",
]
