"""Write a report: one HTML page, the same as Markdown, and all numbers as CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .._files import write_atomically
from .document import Document
from .markdown import render_markdown
from .page import render_page
from .results import Results
from .statistics import summarize

__all__ = ["WrittenReport", "write_document"]

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
