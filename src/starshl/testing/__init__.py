"""Contracts that anyone can run on their own implementation."""

from __future__ import annotations

from .hashers import check_hasher, hasher_checks
from .indexes import check_index, index_checks

__all__ = [
    "check_hasher",
    "check_index",
    "hasher_checks",
    "index_checks",
]
