"""The hashing methods that *SHL is compared with, one file a paper."""

from .lda_hash import LDAHash
from .lsh import LSHash
from .metric_lsh import MetricLSH
from .semantic import SemanticHashing
from .sth import SelfTaughtHash

__all__ = ["LDAHash", "LSHash", "MetricLSH", "SelfTaughtHash", "SemanticHashing"]
