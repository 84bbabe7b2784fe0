"""The hashing methods that *SHL is compared with, one file a paper."""

from .lsh import LSHash

__all__ = ["LSHash"]
