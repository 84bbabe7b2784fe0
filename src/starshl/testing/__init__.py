"""Contracts that anyone can run on an implementation of their own."""

from .hashers import check_hasher

__all__ = ["check_hasher"]
