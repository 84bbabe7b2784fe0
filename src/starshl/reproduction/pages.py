"""Results as pages of the documentation: one to read in a minute, and an appendix page for everything else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .._common.files import write_atomically
from .._version import __version__
from ..evaluation.reports.document import Chart, Document, Pictures, Section
from ..evaluation.reports.html import styles_of
from ..evaluation.reports.markdown import render_markdown
from ..evaluation.reports.svg import render_standalone, render_strips
from .claims import check_claims, claims_in_short, claims_section
from .compared_methods import title_of
from .coverage import settings_section, what_was_run
from .figures import FIGURES
from .overview import answer_section, coverage_section
from .paper_figures import SHOWN, paper_figure_sections
from .pictures import pictures_section
from .records import RecordFolder
from .report import STYLES, label_sections
from .results import Results
from .retrieval import reading_notes, retrieval_section
from .studies import beyond_section, labels_scope, unsupervised_scope, unsupervised_section
from .transduction import transductive_section
from .whole_lists import lists_in_short, lists_section

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
    figures = paper_figure_sections(results, verdicts, retrieved)
    middle = [lists_in_short(results), *figures, claims_in_short(verdicts), beyond_section(results)]
    front = [answer_section(results, verdicts), *(section for section in middle if section is not None)]
    others = [(title, name) for title, name in OTHER_PAGES if (Path(target) / name).is_file()]
    front.append(coverage_section(results, pages + others))
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
        "lists": [lists_section(p) for p in results.of_task("lists") if p.lengths],
        "transductive": [transductive_section(p) for p in results.of_task("transductive") if p.lengths],
        "labels": label_sections(results),
        "unsupervised": [unsupervised_section(p) for p in results.of_task("unsupervised") if p.lengths],
    }
    for name, scope in (("labels", labels_scope()), ("unsupervised", unsupervised_scope())):
        studies[name] = [scope, *studies[name]] if studies[name] else []
    titles = {
        "lists": "Whole lists of unseen and of labeled items: all tables",
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
