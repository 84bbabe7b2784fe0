"""Exact search over codes: a flat scan, buckets of equal codes, and the choice between them."""

from .base import HammingIndex, Neighbors, RadiusNeighbors
from .buckets import BucketIndex
from .choice import load_index, make_index
from .flat import FlatIndex

__all__ = [
    "BucketIndex",
    "FlatIndex",
    "HammingIndex",
    "Neighbors",
    "RadiusNeighbors",
    "load_index",
    "make_index",
]
