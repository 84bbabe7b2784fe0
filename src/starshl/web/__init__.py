"""A search service over collections: plain Python here, and HTTP on top of it in ``web.http``."""

from .searcher import Searcher
from .service import Service

__all__ = ["Searcher", "Service"]
