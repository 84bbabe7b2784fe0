"""Codes that hold a class and neighbors."""

from .hasher import HybridHasher

__all__ = ["HybridHasher"]
