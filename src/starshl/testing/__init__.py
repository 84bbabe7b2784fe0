"""Contracts that anyone can run on an implementation of their own."""

from .indexes import check_index, index_checks

__all__ = ["check_index", "index_checks"]
