"""Label-efficiency curves as a section of a report, and as a separate picture."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluation.label_efficiency import LabelEfficiency
from .document import Chart, Section, Series, Table, Text, plus_minus
from .statistics import Summary, best_of, summarize

__all__ = ["label_efficiency_chart", "label_efficiency_section"]

_READING = (
    "Only a few rows of every class have a label, drawn at random. Each method sees all rows and those labels, and is "
    "scored on the rows whose labels it did not see. Further left means less labeling work."
)


def label_efficiency_section(curves: Sequence[LabelEfficiency], emphasized: str = "") -> Section:
    """Return charts and tables of accuracy over labels per class; one line may be emphasized."""
    origins = dict.fromkeys(curve.origin for curve in curves if curve.origin)
    section = Section("How many labels are needed", "label-efficiency", [Text((_READING, *origins))])
    section.blocks += [label_efficiency_chart(curve, emphasized) for curve in curves]
    section.blocks += [_table(curve) for curve in curves]
    return section


def label_efficiency_chart(curve: LabelEfficiency, emphasized: str = "") -> Chart:
    """Return accuracy on the unlabeled rows over labels per class."""
    series = tuple(_series(curve, name, name == emphasized) for name in curve.accuracies)
    ticks = tuple(float(n) for n in curve.labels_per_class)
    return Chart(
        curve.title, "labels per class", "accuracy on unlabeled rows", series, ticks=ticks, log_x=len(ticks) > 1
    )


def _series(curve: LabelEfficiency, name: str, emphasized: bool) -> Series:
    pairs = zip(curve.labels_per_class, _summaries(curve, name), strict=True)
    points = [(float(n_labels), summary) for n_labels, summary in pairs if summary is not None]
    return Series(
        name,
        tuple(x for x, _ in points),
        tuple(summary.mean for _, summary in points),
        tuple(summary.deviation for _, summary in points),
        emphasized,
    )


def _summaries(curve: LabelEfficiency, name: str) -> list[Summary | None]:
    return [summarize(draws) for draws in curve.accuracies[name]]


def _table(curve: LabelEfficiency) -> Table:
    columns = ("method", *(f"{n} per class" for n in curve.labels_per_class))
    summaries = {name: _summaries(curve, name) for name in curve.accuracies}
    rows = tuple((name, *map(plus_minus, cells)) for name, cells in summaries.items())
    strong = {
        (row, place + 1)
        for place in range(len(curve.labels_per_class))
        for row in _best_rows([cells[place] for cells in summaries.values()])
    }
    caption = f"{curve.title}: accuracy on the unlabeled rows, mean and deviation over draws; best in bold"
    return Table(caption, columns, rows, frozenset(strong))


def _best_rows(cells: list[Summary | None]) -> set[int]:
    return best_of({row: cell.mean for row, cell in enumerate(cells) if cell is not None})
