"""Run experiments by named protocols, store and score them, and reproduce those of one paper.

The paper is Huang et al. 2015, "Hash function learning via codewords".
"""

from __future__ import annotations

from .claims import check_claims
from .executor import execute
from .figures import figure
from .label_efficiency import LabelEfficiency, measure_label_efficiency
from .plan import make_plan
from .protocols import PROTOCOLS, Protocol, protocol
from .records import Record, RecordFolder, RunKey
from .report import write_report
from .runner import run, run_classifier, run_float_search
from .scores import score
from .splits import Sampling, SplitData, draw_rows, split_data
from .summaries import RunSummary, SummaryFolder, compare_rerun, summarize_record

__all__ = [
    "PROTOCOLS",
    "LabelEfficiency",
    "Protocol",
    "Record",
    "RecordFolder",
    "RunKey",
    "RunSummary",
    "Sampling",
    "SplitData",
    "SummaryFolder",
    "check_claims",
    "compare_rerun",
    "draw_rows",
    "execute",
    "figure",
    "make_plan",
    "measure_label_efficiency",
    "protocol",
    "run",
    "run_classifier",
    "run_float_search",
    "score",
    "split_data",
    "summarize_record",
    "write_report",
]
