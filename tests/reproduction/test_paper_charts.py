"""Charts of the paper's report: looks of its methods, and curves over runs."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from starshl.evaluation.reports.charts import LOOKS, render_chart
from starshl.evaluation.reports.document import Chart, Document, Section, Series
from starshl.evaluation.reports.html import render_page
from starshl.reproduction.compared_methods import COMPARED_METHODS, is_star
from starshl.reproduction.report import STYLES
from starshl.reproduction.results import MethodRun
from starshl.reproduction.retrieval import retrieval_section

RIVALS = ("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm")


def panels_of(chart):
    """Return the charts of a figure, without the areas nested in them."""
    styles = {series.name: place for place, series in enumerate(chart.series)}
    figure = ET.fromstring(render_chart(chart, styles))
    return [svg for svg in figure.iter("svg") if svg.get("class") == "chart"]


def paths(element, kind):
    return [path for path in element.iter("path") if path.get("class") == kind]


def value_of(panel, y):
    """Return the value that a height in a panel stands for, read from the marked values of its axis."""
    ticks = [(float(t.get("y")) - 4, float(t.text)) for t in panel.iter("text") if t.get("text-anchor") == "end"]
    (first, low), (last, high) = ticks[0], ticks[-1]
    return low + (y - first) / (last - first) * (high - low)


def test_rivals_on_the_page_differ_in_color_marker_and_dash():
    titles = [COMPARED_METHODS[key].title for key in RIVALS]
    weak = [COMPARED_METHODS[key].title for key in ("bre", "1-agh", "2-agh", "sph", "lsh", "svc", "float")]
    lines = tuple(Series(title, (5, 15), (0.5, 0.6), emphasized=is_star(title)) for title in titles + weak)
    page = render_page(Document("d", "s", [Section("t", "x", [Chart("t", "bits", "P@10", lines, (5, 15))])], STYLES))
    figure = ET.fromstring(re.search(r"<figure>.*?</figure>", page, re.DOTALL).group(0))
    looks = {}
    for group in figure.iter("g"):
        color = re.search(r"\bc\d", group.get("class")).group(0)
        [line] = paths(group, "line")
        looks[group.get("data-name")] = (color, line.get("stroke-dasharray"), paths(group, "mark")[0].get("d"))
    for first, second in combinations(titles, 2):
        assert all(a != b for a, b in zip(looks[first], looks[second], strict=True)), (first, second)
    assert len(set(looks.values())) == 13


def test_other_studies_keep_the_looks_of_known_methods_and_the_star_for_star_lines():
    names = ("*SHL", "k-means start", "ITQ", "1-AGH", "LSH", "inductive, hinge (defaults)")
    lines = tuple(Series(name, (5, 15), (0.5, 0.6), emphasized=is_star(name)) for name in names)
    page = render_page(Document("d", "s", [Section("t", "x", [Chart("t", "bits", "P@10", lines, (5, 15))])], STYLES))
    figure = ET.fromstring(re.search(r"<figure>.*?</figure>", page, re.DOTALL).group(0))
    markers = {
        group.get("data-name"): (paths(group, "mark")[0].get("d"), "hollow" in group.get("class"))
        for group in figure.iter("g")
    }
    assert [name for name in names if markers[name][0] == LOOKS[1].marker] == ["*SHL"]
    assert markers["LSH"] == (LOOKS[12].marker, True)
    assert len(set(markers.values())) == len(names)


@pytest.fixture(scope="module")
def curves_chart(made):
    found = made("retrieval-digits", {}).protocols[0]
    for run, (precision, recall) in enumerate((([0.9, 0.7, 0.1], [0.2, 0.6, 1.0]), ([0.7, 0.5, 0.1], [0.4, 0.8, 1.0]))):
        curve = {"radius": [0, 1, 2], "precision": precision, "recall": recall}
        found.runs.append(MethodRun("lsh", 15, run, 0, {"P@10": 0.5}, curve))
    section = retrieval_section(found)
    return next(b for b in section.blocks if isinstance(b, Chart) and b.title.startswith("Precision and recall"))


def test_curves_are_averaged_by_radius_with_the_deviation_of_precision(curves_chart):
    [line] = curves_chart.series
    assert line.x == pytest.approx((0.3, 0.7, 1.0))
    assert line.y == pytest.approx((0.8, 0.6, 0.1))
    assert line.deviations == pytest.approx((0.02**0.5, 0.02**0.5, 0.0))


def test_the_deviation_of_a_curve_is_an_area_around_it(curves_chart):
    [panel] = panels_of(curves_chart)
    [band] = paths(panel, "band")
    corners = [float(y) for y in re.findall(r",([\d.]+)", band.get("d"))]
    ends = [0.8 + 0.02**0.5, 0.6 + 0.02**0.5, 0.1, 0.1, 0.6 - 0.02**0.5, 0.8 - 0.02**0.5]
    assert [value_of(panel, y) for y in corners] == pytest.approx(ends, abs=0.003)
    assert not paths(panel, "bar")
