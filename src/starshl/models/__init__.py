"""The method of the paper."""

from .bound import GeneralizationBound
from .star_shl import StarSHL

__all__ = ["GeneralizationBound", "StarSHL"]
