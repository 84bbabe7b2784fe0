"""The hashing methods that *SHL is compared with, one file a paper."""

from .lsh import LSHash
from .metric_lsh import MetricLSH
from .semantic import SemanticHashing
from .sth import SelfTaughtHash

__all__ = ["LSHash", "MetricLSH", "SelfTaughtHash", "SemanticHashing"]
