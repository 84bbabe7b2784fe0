"""The hashing methods that *SHL is compared with, one file a paper."""

from .itq import ITQ
from .lsh import LSHash
from .spectral import SpectralHash

__all__ = ["ITQ", "LSHash", "SpectralHash"]
