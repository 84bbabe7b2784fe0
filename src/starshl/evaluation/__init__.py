"""Rankings and relevance in, numbers out; blind to every method."""

from .histograms import HammingHistograms, hamming_histograms
from .metrics import (
    Lookup,
    PrecisionRecall,
    average_precision,
    expected_precision,
    list_size,
    lookup,
    mean_average_precision,
    pr_area,
    precision_at,
    precision_recall,
)
from .occupancy import Occupancy, codeword_accuracy, occupancy
from .protocols import PROTOCOLS, Protocol, protocol, protocols
from .splits import Rows, Split, SplitData, split_data

__all__ = [
    "PROTOCOLS",
    "HammingHistograms",
    "Lookup",
    "Occupancy",
    "PrecisionRecall",
    "Protocol",
    "Rows",
    "Split",
    "SplitData",
    "average_precision",
    "codeword_accuracy",
    "expected_precision",
    "hamming_histograms",
    "list_size",
    "lookup",
    "mean_average_precision",
    "occupancy",
    "pr_area",
    "precision_at",
    "precision_recall",
    "protocol",
    "protocols",
    "split_data",
]
