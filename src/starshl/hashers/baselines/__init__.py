"""The hashing methods that *SHL is compared with, one file per paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._common.lazy import on_first_use

if TYPE_CHECKING:
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

# On first use: nobody uses all of them, and a model of one is loaded sooner without the others.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "anchor_graph": ["AnchorGraphHash"],
        "boost_ssc": ["BoostSSC"],
        "bre": ["BRE"],
        "cg_hash": ["CGHash"],
        "codeword_svm": ["CodewordSVM"],
        "cosdish": ["COSDISH"],
        "forgiving": ["ForgivingHash"],
        "itq": ["ITQ", "RandomRotation"],
        "kernel_lsh": ["KernelLSH"],
        "kmeans_hash": ["KMeansHash"],
        "ksh": ["KSH"],
        "lamp": ["LAMP"],
        "lda_hash": ["LDAHash"],
        "lsh": ["LSHash"],
        "metric_lsh": ["MetricLSH"],
        "mlh": ["MLH"],
        "pca_hash": ["PCAHash"],
        "psh": ["ParamSensitiveHash"],
        "rabitq": ["RaBitQ", "Sketch"],
        "sdh": ["SDH"],
        "semantic": ["SemanticHashing"],
        "sign_binarizer": ["SignBinarizer"],
        "spectral": ["SpectralHash"],
        "spherical": ["SphericalHash"],
        "ssh": ["SSH"],
        "sth": ["SelfTaughtHash"],
    },
)
