"""Fill the tables of docs/defaults.md, and draw its chart."""

import re
from pathlib import Path

import figures
from data import FEW_LABELS
from few_labels import LABELS_PER_CLASS
from tables import TABLES

from starshl.evaluation.reports.statistics import shared_runs
from starshl.evaluation.reports.svg import render_standalone
from starshl.reproduction import LabelEfficiency
from starshl.reproduction.label_efficiency import label_efficiency_chart

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "defaults.md"
CHART = ROOT / "docs" / "label_efficiency.svg"

# Lines of the chart, with the numbers of their looks.
DRAWN = {
    "StarRidge": ("StarRidge", 1),
    "StarRidge, labeled rows only": ("StarRidge, labeled rows only", 0),
    "Poisson learning": ("Poisson learning", 2),
    "label spreading": ("label spreading", 3),
    "SVC": ("SVC, labeled rows only", 4),
}
DRAWN_SETS = ("mnist", "usps", "agnews", "pendigits")


def run(options) -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", filled, text, flags=re.DOTALL))
    curves = [curve for name in DRAWN_SETS if (curve := curve_of(name)) is not None]
    if curves:
        charts = [label_efficiency_chart(curve, "StarRidge") for curve in curves]
        styles = dict(DRAWN.values())
        title = "How many labels are needed: accuracy on rows without a label"
        CHART.write_text(render_standalone(charts, styles, title=title), encoding="utf-8")


def filled(place: re.Match[str]) -> str:
    make, study = TABLES[place.group(2)]
    command = f"python benchmarks/defaults {study}"
    note = f"*Measured {figures.newest(study.split()[0])}: `{command}`.*"
    table = make()
    content = f"{table}\n\n{note}" if table.count("\n") > 1 else f"*Not measured yet: `{command}`.*"
    return f"{place.group(1)}\n{content}\n\n{place.group(3)}"


def curve_of(name: str) -> LabelEfficiency | None:
    """Return the curve of a data set over the numbers of labels for which all lines are there."""
    values = figures.few_labels(name, "unlabeled")
    drawn = {shown: values[key] for key, (shown, _) in DRAWN.items()}
    by_labels = {n: shared_runs({shown: runs.get(n, {}) for shown, runs in drawn.items()}) for n in LABELS_PER_CLASS}
    labels = tuple(n for n, shared in by_labels.items() if all(shared.get(shown) for shown, _ in DRAWN.values()))
    if len(labels) < 2:
        return None
    accuracies = {shown: tuple(tuple(by_labels[n][shown].values()) for n in labels) for shown, _ in DRAWN.values()}
    task = FEW_LABELS[name]
    return LabelEfficiency(f"{task.title}, {task.n_train:,} rows", task.n_train, labels, accuracies)
