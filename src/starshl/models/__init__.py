"""The method of the paper, and its form with squared loss."""

from .bound import GeneralizationBound
from .star_ridge import StarRidge
from .star_shl import StarSHL

__all__ = ["GeneralizationBound", "StarRidge", "StarSHL"]
