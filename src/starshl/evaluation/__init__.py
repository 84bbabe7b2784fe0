"""Named splits, runs and their records, and metrics; nothing here knows a method or a paper."""

from .accuracy import codeword_accuracy, knn_accuracy
from .executor import Job, Outcome, Progress, execute
from .histograms import HammingHistograms, hamming_histograms
from .label_efficiency import LabelEfficiency, label_efficiency
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
from .protocols import PROTOCOLS, Protocol, base_protocol, frozen_protocols, protocol
from .records import Record, RecordFolder, RunKey
from .reruns import Rerun, compare_rerun
from .runner import labels_used, parameters_of, planned_key, run, run_classifier, run_float_search
from .scores import cluster_agreement, histograms_of, score
from .splits import Rows, Split, SplitData, split_data
from .summaries import RunSummary, SummaryFolder, summarize_record

__all__ = [
    "PROTOCOLS",
    "HammingHistograms",
    "Job",
    "LabelEfficiency",
    "Lookup",
    "Occupancy",
    "Outcome",
    "PrecisionRecall",
    "Progress",
    "Protocol",
    "Record",
    "RecordFolder",
    "Rerun",
    "Rows",
    "RunKey",
    "RunSummary",
    "Split",
    "SplitData",
    "SummaryFolder",
    "average_precision",
    "base_protocol",
    "cluster_agreement",
    "codeword_accuracy",
    "compare_rerun",
    "execute",
    "expected_precision",
    "frozen_protocols",
    "hamming_histograms",
    "histograms_of",
    "knn_accuracy",
    "label_efficiency",
    "labels_used",
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
    "run",
    "run_classifier",
    "run_float_search",
    "score",
    "split_data",
    "summarize_record",
]
