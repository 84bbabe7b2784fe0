"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .bre import BRE
from .ksh import KSH
from .lsh import LSHash
from .spectral import SpectralHash

__all__ = ["BRE", "KSH", "AnchorGraphHash", "LSHash", "SpectralHash"]
