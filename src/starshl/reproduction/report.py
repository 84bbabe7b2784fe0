"""Write the report of the paper's experiments from records, summaries or both."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .._common.files import write_atomically
from .._version import __version__
from ..evaluation.reports.document import Chart, Document, Pictures, Section, listed
from ..evaluation.reports.html import render_page, styles_of
from ..evaluation.reports.markdown import render_markdown
from ..evaluation.reports.statistics import summarize
from ..evaluation.reports.svg import render_standalone, render_strips
from .claims import check_claims
from .figures import FIGURES
from .label_efficiency import EMPHASIZED, LabelEfficiency, label_efficiency_section, shipped_curves
from .lineup import LINEUP, title_of
from .notes import claims_section, settings_section, what_was_run
from .overview import answer_section, claims_in_short, extent_section
from .pictures import pictures_section
from .printed_figures import SHOWN, printed_sections
from .protocols import ALL_PROTOCOLS as PROTOCOLS
from .records import RecordFolder
from .results import ProtocolResults, Results, read_results
from .retrieval import reading_notes, retrieval_section
from .studies import beyond_section, labels_scope, labels_section, unsupervised_scope, unsupervised_section
from .summaries import SummaryFolder
from .transduction import transductive_section

# Put the sections of the report together.

# The strongest rivals come first, because the first eight looks also differ in color.
_STYLED_KEYS = (
    *("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm", "svc", "float"),
    *("bre", "1-agh", "2-agh", "sph", "lsh", "starridge"),
)
STYLES = {title_of(key): style for style, key in enumerate(_STYLED_KEYS)}


def build_document(
    folder: RecordFolder | None, results: Results, label_curves: Sequence[LabelEfficiency] = ()
) -> Document:
    """Return the whole report; the same results give the same report. Pictures need the folder of records."""
    subtitle = f"starshl {__version__}; last run finished {results.finished or 'never'}"
    sections = [what_was_run(results)]
    sections += [label_efficiency_section(label_curves, EMPHASIZED)] if label_curves else []
    sections.append(claims_section(check_claims(results)))
    retrieval = [retrieval_section(protocol) for protocol in results.of_task("retrieval") if protocol.lengths]
    sections += [reading_notes(), *retrieval] if retrieval else []
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


# Write a report: one HTML page, the same as Markdown, and all numbers as CSV.

_Row: TypeAlias = list[str | int | float | None]


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Where the report is, and what it was made from."""

    page: Path
    markdown: Path
    tables: tuple[Path, ...]
    results: Results


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


# Results as pages of the documentation: one to read in a minute, and an appendix page for everything else.

_FOLDER = "results"
_RETRIEVED = "retrieved-pictures.svg"
_RETRIEVED_TITLE = "The query, and the nearest codes by each method; pale in dashed frames: another class"
_TITLE = "Results: the experiments of the paper, rerun"
# Linked where they are, next to results.md in the docs.
OTHER_PAGES = [
    ("What every method is, with a picture of what it finds", "gallery.md"),
    ("How *SHL works, and what the terms mean", "method.md"),
    ("Which defaults StarRidge has, and on which data they were chosen", "defaults.md"),
    ("How to rerun all this, and what it costs", "reproduce.md"),
    ("Figures that other papers print, next to ours on the same protocol", "anchors.md"),
]


def write_pages(results: Results, target: str | os.PathLike[str], records: RecordFolder | None = None) -> Path:
    """Write ``results.md`` and the pages and drawings in ``results/`` to a folder, and return the first.

    The same results give the same bytes. Pages of results that are no longer there are removed. Retrieved pictures are
    drawn from records, which hold the codes; without them, an earlier drawing stays.
    """
    folder = Path(target) / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    appendix = _appendix(results)
    pages = [(title, f"{_FOLDER}/{name}.md") for name, (title, _) in appendix.items()]
    verdicts = check_claims(results)
    _draw_retrieved(results, records, folder / _RETRIEVED)
    retrieved = f"{_FOLDER}/{_RETRIEVED}" if (folder / _RETRIEVED).is_file() else None
    printed = printed_sections(results, verdicts, retrieved)
    beyond = beyond_section(results)
    front = [answer_section(results, verdicts), *printed, claims_in_short(verdicts)]
    front += [] if beyond is None else [beyond]
    others = [(title, name) for title, name in OTHER_PAGES if (Path(target) / name).is_file()]
    front.append(extent_section(results, pages + others))
    main = Path(target) / "results.md"
    written = {_write(main, _TITLE, results, front, {"answer": ("who-wins", "Who wins where, and by how much")})}
    for name, (title, sections) in appendix.items():
        drawings = {section.anchor: (section.anchor, section.title) for section in sections}
        written.add(_write(folder / f"{name}.md", title, results, sections, drawings))
    kept = {_RETRIEVED} | {path.name for path in written} | {f"{name}.svg" for name in _drawn(front, appendix)}
    for stale in (path for path in folder.iterdir() if path.suffix in (".md", ".svg") and path.name not in kept):
        stale.unlink()
    return main


def _draw_retrieved(results: Results, records: RecordFolder | None, path: Path) -> None:
    """Draw the query of the paper's figure and what the methods of the page retrieve, if the records are there."""
    names = {protocol.name for protocol in FIGURES["pictures"].protocols}
    shown = {title_of(method) for method in SHOWN}
    for section in (pictures_section(records, found) for found in results.protocols if found.name in names):
        for block in section.blocks if section is not None else ():
            if isinstance(block, Pictures):
                rows = tuple(row for row in block.rows if row[0] in shown)
                drawing = render_strips(Pictures(block.caption, block.query, rows), title=_RETRIEVED_TITLE)
                write_atomically(path, drawing.encode())


def _appendix(results: Results) -> dict[str, tuple[str, list[Section]]]:
    """Return the appendix pages by file name: a title and sections."""
    pages: dict[str, tuple[str, list[Section]]] = {}
    for protocol in results.of_task("retrieval"):
        if protocol.lengths and not protocol.reduced:
            section = retrieval_section(protocol)
            pages[protocol.dataset] = (f"Retrieval on {protocol.dataset}: all tables", [section, reading_notes()])
    studies = {
        "transductive": [transductive_section(p) for p in results.of_task("transductive") if p.lengths],
        "labels": label_sections(results),
        "unsupervised": [unsupervised_section(p) for p in results.of_task("unsupervised") if p.lengths],
    }
    for name, scope in (("labels", labels_scope()), ("unsupervised", unsupervised_scope())):
        studies[name] = [scope, *studies[name]] if studies[name] else []
    titles = {
        "transductive": "Inductive and transductive accuracy",
        "labels": "Few labels",
        "unsupervised": "Codes without labels",
    }
    pages |= {name: (titles[name], sections) for name, sections in studies.items() if sections}
    pages["claims"] = ("The claims of the paper, with all figures", [claims_section(check_claims(results))])
    pages["settings"] = ("What was run: extent, settings, seeds", [what_was_run(results), settings_section(results)])
    return pages


def _write(
    path: Path, title: str, results: Results, sections: Sequence[Section], drawings: Mapping[str, tuple[str, str]]
) -> Path:
    """Write one page, and the charts of each section as one drawing in the folder of the appendix.

    ``drawings`` maps the anchors of sections to the name and the title of their drawing.
    """
    subtitle = f"starshl {__version__}; last run finished {results.finished or 'never'}"
    inside = path.parent.name == _FOLDER
    folder = path.parent if inside else path.parent / _FOLDER
    addresses = {}
    for section in sections:
        charts = [block for block in section.blocks if isinstance(block, Chart)]
        if charts and section.anchor in drawings:
            name, heading = drawings[section.anchor]
            write_atomically(folder / f"{name}.svg", _drawing(charts, heading).encode())
            addresses[section.anchor] = heading, f"{name}.svg" if inside else f"{_FOLDER}/{name}.svg"
    write_atomically(path, render_markdown(Document(title, subtitle, list(sections)), addresses).encode())
    return path


def _drawing(charts: Sequence[Chart], title: str) -> str:
    emphasized = {series.name: series.emphasized for chart in charts for series in chart.series}
    return render_standalone(charts, styles_of(emphasized, STYLES), title=title)


def _drawn(front: Iterable[Section], appendix: Mapping[str, tuple[str, list[Section]]]) -> set[str]:
    sections = [section for _, sections in appendix.values() for section in sections]
    names = {section.anchor for section in sections if any(isinstance(block, Chart) for block in section.blocks)}
    return names | ({"who-wins"} if any(isinstance(b, Chart) for s in front for b in s.blocks) else set())
