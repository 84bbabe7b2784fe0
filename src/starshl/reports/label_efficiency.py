"""Label-efficiency curves as a section of a report, and as a separate picture."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluation.label_efficiency import LabelEfficiency
from .document import Chart, Section, Table, Text
from .tables import Runs, line_over, table_of_means

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
    ticks = tuple(float(n) for n in curve.labels_per_class)
    lines = (
        line_over(name, zip(ticks, draws, strict=True), emphasized=name == emphasized)
        for name, draws in _by_draw(curve).items()
    )
    series = tuple(line for line in lines if line is not None)
    return Chart(
        curve.title, "labels per class", "accuracy on unlabeled rows", series, ticks=ticks, log_x=len(ticks) > 1
    )


def _table(curve: LabelEfficiency) -> Table:
    columns = ("method", *(f"{n} per class" for n in curve.labels_per_class))
    caption = f"{curve.title}: accuracy on the unlabeled rows, mean and deviation over draws; best in bold"
    return table_of_means(caption, columns, _by_draw(curve))


def _by_draw(curve: LabelEfficiency) -> dict[str, list[Runs]]:
    """Return draw -> accuracy of each learner, for each number of labels."""
    return {name: [dict(enumerate(draws)) for draws in lists] for name, lists in curve.accuracies.items()}
