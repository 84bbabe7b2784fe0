"""Write the report of the paper's experiments, from records, summaries or both: HTML, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .._common.files import write_atomically
from .._version import __version__
from ..evaluation.reports.document import Document, Section, joined
from ..evaluation.reports.html import render_page
from ..evaluation.reports.markdown import render_markdown
from ..evaluation.reports.statistics import summarize
from .claims import check_claims, claims_section
from .compared_methods import title_of
from .coverage import settings_section, what_was_run
from .pictures import pictures_section
from .records import RecordFolder
from .results import ProtocolResults, Results, read_results
from .retrieval import reading_notes, retrieval_section
from .studies import labels_section, unsupervised_section
from .summaries import SummaryFolder
from .transduction import transductive_section
from .whole_lists import lists_section

_Row: TypeAlias = list[str | int | float | None]
# The strongest rivals come first, because the first eight looks also differ in color.
_STYLED_KEYS = (
    *("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
    *("bre", "1-agh", "2-agh", "sph", "lsh", "starridge"),
)
STYLES = {title_of(key): style for style, key in enumerate(_STYLED_KEYS)}
SUMMARIES_FOLDER = Path("results") / "summaries"


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Where the report is, and what it was made from."""

    page: Path
    markdown: Path
    tables: tuple[Path, ...]
    results: Results


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
    results = read_results(folder, summary_folder, n_jobs=n_jobs, report=report)
    if not results.protocols and not results.failures:
        if results.damaged:
            raise ValueError(f"{os.fspath(records)!r} holds no readable run; damaged: {joined(results.damaged)}.")
        raise ValueError(f"{os.fspath(records)!r} holds no run records yet. Run some experiments first.")
    document = build_document(folder, results)
    return write_document(document, results, output)


def default_summaries(records: Path) -> Path:
    """Return where summaries are kept: with the sources in a clone of the repository, elsewhere with the records.

    The current folder is a clone if it holds the sources of this package and a folder of summaries.
    """
    in_clone = SUMMARIES_FOLDER.is_dir() and (Path("src") / "starshl" / "reproduction").is_dir()
    return SUMMARIES_FOLDER if in_clone else records / "summaries"


def build_document(folder: RecordFolder | None, results: Results) -> Document:
    """Return the whole report; the same results give the same report. Pictures need the folder of records."""
    subtitle = f"starshl {__version__}; last run finished {results.finished or 'never'}"
    sections = [what_was_run(results)]
    sections.append(claims_section(check_claims(results)))
    retrieval = [retrieval_section(protocol) for protocol in results.of_task("retrieval") if protocol.lengths]
    sections += [reading_notes(), *retrieval] if retrieval else []
    sections += [lists_section(protocol) for protocol in results.of_task("lists") if protocol.lengths]
    sections += _pictures(folder, results)
    sections += [transductive_section(protocol) for protocol in results.of_task("transductive") if protocol.lengths]
    sections += label_sections(results)
    sections += [unsupervised_section(protocol) for protocol in results.of_task("unsupervised") if protocol.lengths]
    sections.append(settings_section(results))
    return Document("Hash function learning via codewords: the experiments rerun", subtitle, sections, STYLES)


def label_sections(results: Results) -> list[Section]:
    """Return a section for each data set of the label studies."""
    groups: dict[tuple[str, bool], list[ProtocolResults]] = {}
    for protocol in results.of_task("labels"):
        groups.setdefault((protocol.dataset, protocol.reduced), []).append(protocol)
    return [labels_section(group) for group in groups.values()]


def _pictures(folder: RecordFolder | None, results: Results) -> list[Section]:
    sections = (pictures_section(folder, protocol) for protocol in results.of_task("retrieval"))
    return [section for section in sections if section is not None]


def write_document(document: Document, results: Results, output: str | os.PathLike[str]) -> WrittenReport:
    """Write ``report.html``, ``report.md`` and three CSV files to a folder, which is created if absent."""
    target = Path(output)
    target.mkdir(parents=True, exist_ok=True)
    page, markdown = target / "report.html", target / "report.md"
    write_atomically(page, render_page(document).encode())
    write_atomically(markdown, render_markdown(document).encode())
    tables = []
    for name, (columns, rows) in _csv_tables(results).items():
        tables.append(target / name)
        write_atomically(tables[-1], _csv(columns, rows))
    return WrittenReport(page, markdown, tuple(tables), results)


def _csv(columns: list[str], rows: Iterable[_Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def _csv_tables(results: Results) -> dict[str, tuple[list[str], Iterable[_Row]]]:
    place = ["protocol", "dataset", "method", "bits"]
    return {
        "measurements.csv": ([*place, "run", "seed", "metric", "value"], _measurements(results)),
        "summary.csv": ([*place, "metric", "mean", "deviation", "runs"], _means(results)),
        "curves.csv": ([*place, "run", "radius", "precision", "recall"], _curves(results)),
    }


def _measurements(results: Results) -> Iterable[_Row]:
    for protocol in results.protocols:
        for run in protocol.runs:
            place: _Row = [protocol.name, protocol.dataset, run.method, run.n_bits, run.run, run.seed]
            yield from ([*place, metric, value] for metric, value in run.values.items())


def _means(results: Results) -> Iterable[_Row]:
    for protocol in results.protocols:
        groups: dict[tuple[str, int | None, str], list[float]] = {}
        for run in protocol.runs:
            for metric, value in run.values.items():
                groups.setdefault((run.method, run.n_bits, metric), []).append(value)
        for (method, n_bits, metric), values in groups.items():
            if (summary := summarize(values)) is not None:
                place: _Row = [protocol.name, protocol.dataset, method, n_bits]
                yield [*place, metric, summary.mean, summary.deviation, summary.n]


def _curves(results: Results) -> Iterable[_Row]:
    for protocol in results.protocols:
        for run in protocol.runs:
            curve = run.curve or {"precision": [], "recall": []}
            for radius, point in enumerate(zip(curve["precision"], curve["recall"], strict=True)):
                yield [protocol.name, protocol.dataset, run.method, run.n_bits, run.run, radius, *point]
