"""Exact search over codes by Hamming distance, by the probability of the same class, or by both."""

from __future__ import annotations

from .base import CAPABILITIES, HammingIndex, Neighbors, RadiusNeighbors, Wanted
from .buckets import BucketIndex
from .choice import load_index, make_index
from .hybrid import HybridIndex
from .memory import FlatIndex, MemoryIndex
from .multi import MultiIndex
from .posterior import PosteriorIndex
from .residual import Reconstruction, ResidualIndex

__all__ = [
    "CAPABILITIES",
    "BucketIndex",
    "FlatIndex",
    "HammingIndex",
    "HybridIndex",
    "MemoryIndex",
    "MultiIndex",
    "Neighbors",
    "PosteriorIndex",
    "RadiusNeighbors",
    "Reconstruction",
    "ResidualIndex",
    "Wanted",
    "load_index",
    "make_index",
]
