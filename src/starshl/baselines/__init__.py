"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .codeword_svm import CodewordSVM
from .itq import ITQ
from .lsh import LSHash
from .pca_hash import PCAHash
from .random_rotation import RandomRotation, Sketch
from .sdh import SDH
from .sign_binarizer import SignBinarizer
from .spectral import SpectralHash
from .ssh import SSH

__all__ = [
    "ITQ",
    "SDH",
    "SSH",
    "AnchorGraphHash",
    "CodewordSVM",
    "LSHash",
    "PCAHash",
    "RandomRotation",
    "SignBinarizer",
    "Sketch",
    "SpectralHash",
]
