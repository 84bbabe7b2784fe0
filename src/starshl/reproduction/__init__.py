"""The reproduction of one paper: its protocols, figures, line-up, claims and report.

Huang et al. 2015, "Hash function learning via codewords". Everything that is about this paper alone is here; running,
recording, scoring and rendering are in :mod:`starshl.evaluation` and :mod:`starshl.reports`.
"""

from __future__ import annotations

from .claims import Verdict, check_claims
from .figures import FIGURES, Figure, figure, figures_named
from .lineup import LINEUP, Entry, entry, title_of
from .plan import Plan, PlannedRun, make_plan
from .protocols import ALL_PROTOCOLS as PROTOCOLS
from .protocols import PAPER_PROTOCOLS
from .report import default_summaries, write_pages, write_report

__all__ = [
    "Entry",
    "FIGURES",
    "Figure",
    "LINEUP",
    "PAPER_PROTOCOLS",
    "PROTOCOLS",
    "Plan",
    "PlannedRun",
    "Verdict",
    "check_claims",
    "default_summaries",
    "entry",
    "figure",
    "figures_named",
    "make_plan",
    "title_of",
    "write_pages",
    "write_report",
]
