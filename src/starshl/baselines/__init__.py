"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .codeword_svm import CodewordSVM
from .itq import ITQ
from .lsh import LSHash
from .sdh import SDH
from .spectral import SpectralHash
from .ssh import SSH

__all__ = ["ITQ", "SDH", "SSH", "AnchorGraphHash", "CodewordSVM", "LSHash", "SpectralHash"]
