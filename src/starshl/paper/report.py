"""Write the report of the paper's experiments from records, summaries or both."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..evaluation import RecordFolder, SummaryFolder
from ..reports.document import listed
from ..reports.results import read_results
from ..reports.write import WrittenReport, write_document
from .document import build_document
from .label_curve import shipped_curves
from .lineup import LINEUP
from .protocols import PROTOCOLS

__all__ = ["SUMMARIES_FOLDER", "default_summaries", "write_report"]

SUMMARIES_FOLDER = Path("results") / "summaries"


def default_summaries(records: Path) -> Path:
    """Return where summaries are kept: with the sources in a clone of the repository, elsewhere with the records.

    The current folder is a clone if it holds the sources of this package and a folder of summaries.
    """
    in_clone = SUMMARIES_FOLDER.is_dir() and (Path("src") / "starshl" / "paper").is_dir()
    return SUMMARIES_FOLDER if in_clone else records / "summaries"


def write_report(
    records: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    summaries: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> WrittenReport:
    """Write ``report.html``, ``report.md`` and three CSV files about all runs.

    Parameters
    ----------
    records : path of a folder of records
        It may be absent if there are summaries; then there are no pictures.
    output : path of a folder, created if absent
    summaries : path of a folder of summaries, default=None
        None: the folder ``summaries`` within the records.
    n_jobs : int, default=None
        Threads for scoring records that have no summary yet.
    report : callable, default does nothing
        Called with the number of records read and of all.
    """
    summary_folder = SummaryFolder(Path(records) / "summaries" if summaries is None else summaries)
    folder = RecordFolder(records) if Path(records).is_dir() else None
    if folder is None and not len(summary_folder):
        raise ValueError(
            f"There is no folder {os.fspath(records)!r} of run records, and {str(summary_folder.path)!r} holds no "
            "summaries. Run some experiments first."
        )
    results = read_results(
        folder, summary_folder, protocols=PROTOCOLS, order=tuple(LINEUP), n_jobs=n_jobs, report=report
    )
    if not results.protocols and not results.failures:
        if results.damaged:
            raise ValueError(f"{os.fspath(records)!r} holds no readable run; damaged: {listed(results.damaged)}.")
        raise ValueError(f"{os.fspath(records)!r} holds no run records yet. Run some experiments first.")
    document = build_document(folder, results, shipped_curves())
    return write_document(document, results, output)
