"""The hashing methods that *SHL is compared with, one file a paper."""

from .lsh import LSHash
from .semantic import SemanticHashing
from .sth import SelfTaughtHash

__all__ = ["LSHash", "SelfTaughtHash", "SemanticHashing"]
