"""The hashing methods that *SHL is compared with, one file a paper."""

from .boost_ssc import BoostSSC
from .cg_hash import CGHash
from .forgiving import ForgivingHash
from .lamp import LAMP
from .lda_hash import LDAHash
from .lsh import LSHash
from .metric_lsh import MetricLSH
from .mlh import MLH
from .psh import ParamSensitiveHash
from .semantic import SemanticHashing
from .sth import SelfTaughtHash

__all__ = [
    "LAMP",
    "MLH",
    "BoostSSC",
    "CGHash",
    "ForgivingHash",
    "LDAHash",
    "LSHash",
    "MetricLSH",
    "ParamSensitiveHash",
    "SelfTaughtHash",
    "SemanticHashing",
]
