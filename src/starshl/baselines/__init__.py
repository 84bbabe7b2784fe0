"""The hashing methods that *SHL is compared with, one file a paper."""

from .lsh import LSHash
from .spectral import SpectralHash

__all__ = ["LSHash", "SpectralHash"]
