"""The reproduction of one paper: its protocols, figures, line-up, claims and report.

Huang et al. 2015, "Hash function learning via codewords". Everything that is about this paper alone is here; running,
recording, scoring and rendering are in :mod:`starshl.evaluation` and :mod:`starshl.reports`.
"""

from .claims import Verdict, check_claims
from .figures import FIGURES, Figure, figure, figures_named
from .lineup import LINEUP, Entry, entry, title_of
from .pages import write_pages
from .plan import Plan, PlannedRun, make_plan
from .protocols import PAPER_PROTOCOLS, PROTOCOLS
from .report import default_summaries, write_report

__all__ = [
    "FIGURES",
    "LINEUP",
    "PAPER_PROTOCOLS",
    "PROTOCOLS",
    "Entry",
    "Figure",
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
