"""Rankings and relevance in, numbers out; blind to every method."""

from .accuracy import codeword_accuracy, knn_accuracy
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
from .occupancy import Occupancy, occupancy
from .protocols import PROTOCOLS, Protocol, protocol, protocols
from .records import Record, RecordFolder, RunKey
from .runner import parameters_of, planned_key, run, run_classifier, run_float_search, run_key
from .scores import cluster_agreement, histograms_of, score
from .splits import Rows, Split, SplitData, split_data

__all__ = [
    "PROTOCOLS",
    "HammingHistograms",
    "Lookup",
    "Occupancy",
    "PrecisionRecall",
    "Protocol",
    "Record",
    "RecordFolder",
    "Rows",
    "RunKey",
    "Split",
    "SplitData",
    "average_precision",
    "cluster_agreement",
    "codeword_accuracy",
    "expected_precision",
    "hamming_histograms",
    "histograms_of",
    "knn_accuracy",
    "list_size",
    "lookup",
    "mean_average_precision",
    "occupancy",
    "parameters_of",
    "planned_key",
    "pr_area",
    "precision_at",
    "precision_recall",
    "protocol",
    "protocols",
    "run",
    "run_classifier",
    "run_float_search",
    "run_key",
    "score",
    "split_data",
]
