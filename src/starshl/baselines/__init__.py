"""The hashing methods that *SHL is compared with, one file a paper."""

from .anchor_graph import AnchorGraphHash
from .boost_ssc import BoostSSC
from .bre import BRE
from .cg_hash import CGHash
from .forgiving import ForgivingHash
from .ksh import KSH
from .lamp import LAMP
from .lda_hash import LDAHash
from .lsh import LSHash
from .metric_lsh import MetricLSH
from .mlh import MLH
from .psh import ParamSensitiveHash
from .semantic import SemanticHashing
from .spectral import SpectralHash
from .sth import SelfTaughtHash

__all__ = [
    "BRE",
    "KSH",
    "LAMP",
    "MLH",
    "AnchorGraphHash",
    "BoostSSC",
    "CGHash",
    "ForgivingHash",
    "LDAHash",
    "LSHash",
    "MetricLSH",
    "ParamSensitiveHash",
    "SelfTaughtHash",
    "SemanticHashing",
    "SpectralHash",
]
