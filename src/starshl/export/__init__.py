"""Fitted hashers in other runtimes: ONNX models, and pages that search in a browser."""

from __future__ import annotations

from .onnx_model import to_onnx
from .pipelines import register_converters
from .search_page import write_search_page
from .steps import words_of

__all__ = [
    "register_converters",
    "to_onnx",
    "words_of",
    "write_search_page",
]
