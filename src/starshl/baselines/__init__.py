"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .bre import BRE
from .codeword_svm import CodewordSVM
from .cosdish import COSDISH
from .itq import ITQ
from .kernel_lsh import KernelLSH
from .kmeans_hash import KMeansHash
from .ksh import KSH
from .lsh import LSHash
from .pca_hash import PCAHash
from .random_rotation import RandomRotation, Sketch
from .sdh import SDH
from .sign_binarizer import SignBinarizer
from .spectral import SpectralHash
from .spherical import SphericalHash
from .ssh import SSH

__all__ = [
    "BRE",
    "COSDISH",
    "ITQ",
    "KSH",
    "SDH",
    "SSH",
    "AnchorGraphHash",
    "CodewordSVM",
    "KMeansHash",
    "KernelLSH",
    "LSHash",
    "PCAHash",
    "RandomRotation",
    "SignBinarizer",
    "Sketch",
    "SpectralHash",
    "SphericalHash",
]
