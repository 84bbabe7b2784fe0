"""Measure codes: retrieval metrics in which ties have no order, and codes compared with vectors and each other."""

from __future__ import annotations

from .benchmark import MethodResult
from .comparison import Comparison, ExampleAnswer, ExampleQuery, LengthComparison, compare
from .comparison_page import write_page
from .histograms import HammingHistograms, hamming_histograms
from .metrics import (
    Lookup,
    Occupancy,
    PrecisionRecall,
    average_precision,
    codeword_accuracy,
    expected_precision,
    knn_accuracy,
    list_size,
    lookup,
    mean_average_precision,
    occupancy,
    pr_area,
    precision_at,
    precision_recall,
)

__all__ = [
    "Comparison",
    "ExampleAnswer",
    "ExampleQuery",
    "HammingHistograms",
    "LengthComparison",
    "Lookup",
    "MethodResult",
    "Occupancy",
    "PrecisionRecall",
    "average_precision",
    "codeword_accuracy",
    "compare",
    "expected_precision",
    "hamming_histograms",
    "knn_accuracy",
    "list_size",
    "lookup",
    "mean_average_precision",
    "occupancy",
    "pr_area",
    "precision_at",
    "precision_recall",
    "write_page",
]
