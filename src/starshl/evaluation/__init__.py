"""Named splits, runs and their records, and metrics; nothing here knows a method or a paper."""

from __future__ import annotations

from .benchmark import MethodFigures
from .comparison import Answer, Comparison, LengthComparison, Question, compare
from .comparison_page import find_titles, guess_picture_shape, write_page
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
    "Answer",
    "Comparison",
    "HammingHistograms",
    "LengthComparison",
    "Lookup",
    "MethodFigures",
    "Occupancy",
    "PrecisionRecall",
    "Question",
    "average_precision",
    "codeword_accuracy",
    "compare",
    "expected_precision",
    "find_titles",
    "guess_picture_shape",
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
