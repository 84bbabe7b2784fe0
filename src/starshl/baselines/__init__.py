"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .lsh import LSHash
from .spectral import SpectralHash

__all__ = ["AnchorGraphHash", "LSHash", "SpectralHash"]
