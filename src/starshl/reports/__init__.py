"""Records in, a report out: tables, findings in plain words, the paper's claims, charts and pictures."""

from .claims import Verdict, check_claims
from .results import ProtocolResults, Results, read_results
from .statistics import Paired, Summary, paired, summarize
from .write import WrittenReport, write_report

__all__ = [
    "Paired",
    "ProtocolResults",
    "Results",
    "Summary",
    "Verdict",
    "WrittenReport",
    "check_claims",
    "paired",
    "read_results",
    "summarize",
    "write_report",
]
