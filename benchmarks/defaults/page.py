"""Fill the tables of docs/defaults.md and docs/few_labels.md, and draw the chart of labels."""

import re
from pathlib import Path

import figures
from spread import LABELS_PER_CLASS, MOST_ROWS, SETS
from tables import BESIDE, TABLES

from starshl.evaluation.reports.statistics import shared_runs
from starshl.evaluation.reports.svg import render_standalone
from starshl.reproduction import LabelEfficiency
from starshl.reproduction.label_efficiency import label_efficiency_chart

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs" / "defaults.md", ROOT / "docs" / "few_labels.md")
CHART = ROOT / "docs" / "label_efficiency.svg"

# Lines of the chart, with the numbers of their looks.
DRAWN = {name: look for look, name in enumerate(name for name in BESIDE if name != "graph alone")}
DRAWN_SETS = ("mnist", "usps", "agnews", "grocery")


def run(options) -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", filled, text, flags=re.DOTALL))
    charts = [label_efficiency_chart(curve_of(name), "StarRidge") for name in DRAWN_SETS]
    title = "How many labels are needed: accuracy on rows without a label"
    CHART.write_text(render_standalone(charts, DRAWN, title=title), encoding="utf-8")


def filled(place: re.Match[str]) -> str:
    make, study = TABLES[place.group(2)]
    command = f"python benchmarks/defaults {study}"
    note = f"*Measured {figures.newest(study.split()[0])}: `{command}`.*"
    table = make()
    content = f"{table}\n\n{note}" if table.count("\n") > 1 else f"*Not measured yet: `{command}`.*"
    return f"{place.group(1)}\n{content}\n\n{place.group(3)}"


def curve_of(name: str) -> LabelEfficiency:
    values = figures.spread(name, "accuracy")
    shared = [shared_runs({method: values[method][n] for method in DRAWN}) for n in LABELS_PER_CLASS]
    accuracies = {method: tuple(tuple(here[method].values()) for here in shared) for method in DRAWN}
    return LabelEfficiency(SETS[name], MOST_ROWS, LABELS_PER_CLASS, accuracies)
