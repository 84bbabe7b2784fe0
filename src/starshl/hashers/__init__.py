"""The method of the paper, and its form with squared loss."""

from __future__ import annotations

from .hybrid import HybridHasher
from .star.bound import GeneralizationBound
from .star.star_ridge import StarRidge
from .star.star_shl import StarSHL

__all__ = [
    "GeneralizationBound",
    "HybridHasher",
    "StarRidge",
    "StarSHL",
]
