"""The hashing methods that *SHL is compared with, one file per paper."""

from __future__ import annotations

from .anchor_graph import AnchorGraphHash
from .boost_ssc import BoostSSC
from .bre import BRE
from .cg_hash import CGHash
from .codeword_svm import CodewordSVM
from .cosdish import COSDISH
from .forgiving import ForgivingHash
from .itq import ITQ, RandomRotation
from .kernel_lsh import KernelLSH
from .kmeans_hash import KMeansHash
from .ksh import KSH
from .lamp import LAMP
from .lda_hash import LDAHash
from .lsh import LSHash
from .metric_lsh import MetricLSH
from .mlh import MLH
from .pca_hash import PCAHash
from .psh import ParamSensitiveHash
from .rabitq import RaBitQ, Sketch
from .sdh import SDH
from .semantic import SemanticHashing
from .sign_binarizer import SignBinarizer
from .spectral import SpectralHash
from .spherical import SphericalHash
from .ssh import SSH
from .sth import SelfTaughtHash

__all__ = [
    "BRE",
    "COSDISH",
    "ITQ",
    "KSH",
    "LAMP",
    "MLH",
    "SDH",
    "SSH",
    "AnchorGraphHash",
    "BoostSSC",
    "CGHash",
    "CodewordSVM",
    "ForgivingHash",
    "KMeansHash",
    "KernelLSH",
    "LDAHash",
    "LSHash",
    "MetricLSH",
    "PCAHash",
    "ParamSensitiveHash",
    "RaBitQ",
    "RandomRotation",
    "SelfTaughtHash",
    "SemanticHashing",
    "SignBinarizer",
    "Sketch",
    "SpectralHash",
    "SphericalHash",
]
