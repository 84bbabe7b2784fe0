"""Charts: deviations in full, looks that differ, the upper part enlarged."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

from starshl.experiments import CONTESTANTS
from starshl.reports.charts import LOOKS, render_chart
from starshl.reports.document import Chart, Document, Section, Series
from starshl.reports.page import render_page
from starshl.reports.results import MethodRun
from starshl.reports.retrieval import retrieval_section

TOP, BOTTOM = 14, 264
RIVALS = ("starshl-paper", "starshl", "ksh", "ksh-all", "hc-sdh", "codeword-svm")


def panels_of(chart):
    """Return the charts of a figure, without the areas nested in them."""
    styles = {series.name: place for place, series in enumerate(chart.series)}
    figure = ET.fromstring(render_chart(chart, styles))
    return [svg for svg in figure.iter("svg") if svg.get("class") == "chart"]


def paths(element, kind):
    return [path for path in element.iter("path") if path.get("class") == kind]


def bar_ends(bar):
    return tuple(map(float, re.match(r"M[\d.]+,(-?[\d.]+)V(-?[\d.]+)", bar.get("d")).groups()))


def n_caps(bar):
    return bar.get("d").count("H")


def value_of(panel, y):
    """Return the value that a height in a panel stands for, read from the marked values of its axis."""
    ticks = [(float(t.get("y")) - 4, float(t.text)) for t in panel.iter("text") if t.get("text-anchor") == "end"]
    (first, low), (last, high) = ticks[0], ticks[-1]
    return low + (y - first) / (last - first) * (high - low)


def test_bars_of_wide_deviations_lie_within_the_frame_and_have_their_full_length():
    line = Series("a", (8, 16, 32), (0.62, 0.97, 0.03), (0.039, 0.08, 0.05))
    [panel] = panels_of(Chart("t", "bits", "P@10", (line,), (8, 16, 32)))
    bars = paths(panel, "bar")
    assert len(bars) == 3
    for bar, mean, deviation in zip(bars, line.y, line.spread, strict=True):
        low, high = bar_ends(bar)
        assert TOP - 0.1 <= high < low <= BOTTOM + 0.1
        assert n_caps(bar) == 2
        assert value_of(panel, low) == pytest.approx(mean - deviation, abs=0.003)
        assert value_of(panel, high) == pytest.approx(mean + deviation, abs=0.003)


def test_no_value_above_one_is_marked_where_only_a_deviation_reaches():
    [panel] = panels_of(Chart("t", "bits", "P@10", (Series("a", (8, 16), (0.9, 0.99), (0.02, 0.04)),), (8, 16)))
    marked = [float(text.text) for text in panel.iter("text") if text.get("text-anchor") == "end"]
    assert max(marked) == 1.0


def test_bars_at_the_same_place_are_moved_apart():
    lines = tuple(Series(f"m{k}", (8, 16), (0.5, 0.6), (0.1, 0.1)) for k in range(13))
    [panel] = panels_of(Chart("t", "bits", "P@10", lines, (8, 16)))
    places = sorted(float(re.match(r"M([\d.]+)", bar.get("d")).group(1)) for bar in paths(panel, "bar"))
    assert np.diff(places).min() > 2


def weak_and_strong():
    strong = tuple(Series(f"s{k}", (5, 15, 45), (0.93, 0.95 + k / 500, 0.96), (0.01,) * 3) for k in range(4))
    weak = Series("weak", (5, 15, 45), (0.2, 0.3, 0.4), (0.3, 0.02, 0.02))
    star = Series("*SHL, defaults", (5, 15, 45), (0.92, 0.97, 0.98), (0.005,) * 3)
    return Chart("t", "bits", "P@10", (star, *strong, weak), (5, 15, 45))


def test_the_upper_part_is_enlarged_where_a_weak_line_presses_it_together():
    whole, upper = panels_of(weak_and_strong())
    assert value_of(whole, BOTTOM) < 0.0
    assert value_of(upper, BOTTOM) > 0.9
    assert "enlarged: P@10 from 0." in upper.get("aria-label")
    told = [path.get("data-tip") for path in paths(upper, "mark")]
    assert not any(tip.startswith("weak") for tip in told)


def test_nothing_is_enlarged_where_all_lines_are_close():
    lines = tuple(Series(f"m{k}", (5, 15), (0.1 + k / 10, 0.9 - k / 10)) for k in range(5))
    assert len(panels_of(Chart("t", "bits", "P@10", lines, (5, 15)))) == 1


def test_a_bar_cut_by_the_enlarged_part_has_no_cap_at_the_cut():
    cut = [bar for bar in paths(panels_of(weak_and_strong())[1], "bar") if bar_ends(bar)[0] > BOTTOM + 0.1]
    assert all(n_caps(bar) == 1 for bar in cut)


def test_star_lines_are_drawn_last():
    for panel in panels_of(weak_and_strong()):
        assert [group.get("data-name") for group in panel.iter("g")][-1] == "*SHL, defaults"


def test_fourteen_looks_differ_without_color():
    assert len(LOOKS) == 14
    assert len({(look.marker, look.hollow) for look in LOOKS}) == 14
    assert len({(look.marker, look.dash) for look in LOOKS}) == 14
    assert len({look.color for look in LOOKS[:8]}) == 8


def test_rivals_on_the_page_differ_in_color_marker_and_dash():
    titles = [CONTESTANTS[key].title for key in RIVALS]
    weak = [CONTESTANTS[key].title for key in ("bre", "1-agh", "2-agh", "sph", "lsh", "svc", "float")]
    lines = tuple(Series(title, (5, 15), (0.5, 0.6)) for title in titles + weak)
    page = render_page(Document("d", "s", [Section("t", "x", [Chart("t", "bits", "P@10", lines, (5, 15))])]))
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
    lines = tuple(Series(name, (5, 15), (0.5, 0.6)) for name in names)
    page = render_page(Document("d", "s", [Section("t", "x", [Chart("t", "bits", "P@10", lines, (5, 15))])]))
    figure = ET.fromstring(re.search(r"<figure>.*?</figure>", page, re.DOTALL).group(0))
    markers = {
        group.get("data-name"): (paths(group, "mark")[0].get("d"), "hollow" in group.get("class"))
        for group in figure.iter("g")
    }
    assert [name for name in names if markers[name][0] == LOOKS[1].marker] == ["*SHL"]
    assert markers["LSH"] == (LOOKS[12].marker, True)
    assert len(set(markers.values())) == len(names)


def test_lines_of_the_transductive_study_have_a_color_each():
    rows = [f"{row} ({setting})" for setting in ("paper settings", "defaults") for row in ("Hamming", "hinge", "both")]
    lines = tuple(Series(name, (5, 15), (0.5, 0.6)) for name in (*rows, "one-vs-one SVC"))
    page = render_page(Document("d", "s", [Section("t", "x", [Chart("t", "bits", "accuracy", lines, (5, 15))])]))
    assert len(set(re.findall(r'<g class="series (c\d)', page))) == 7


def test_points_of_named_ticks_are_not_joined():
    lines = (Series("a", (0, 1), (0.5, 0.4), (0.1, 0.1)), Series("b", (0,), (0.3,), (None,)))
    [panel] = panels_of(Chart("t", "measure", "value", lines, (0, 1), tick_names=("P@10", "mAP")))
    assert not paths(panel, "line")
    assert [path.get("data-tip") for path in paths(panel, "mark")] == [
        "a: 0.500 ± 0.100, P@10",
        "a: 0.400 ± 0.100, mAP",
        "b: 0.300, P@10",
    ]


@pytest.fixture(scope="module")
def curves_chart(made):
    found = made("retrieval-digits", {}).protocols[0]
    for run, (precision, recall) in enumerate((([0.9, 0.7, 0.1], [0.2, 0.6, 1.0]), ([0.7, 0.5, 0.1], [0.4, 0.8, 1.0]))):
        curve = {"radius": [0, 1, 2], "precision": precision, "recall": recall}
        found.runs.append(MethodRun("LSH", 15, run, 0, {"P@10": 0.5}, curve))
    section = retrieval_section(found)
    return next(b for b in section.blocks if isinstance(b, Chart) and b.title.startswith("Precision and recall"))


def test_curves_are_averaged_by_radius_with_the_deviation_of_precision(curves_chart):
    [line] = curves_chart.series
    assert line.x == pytest.approx((0.3, 0.7, 1.0))
    assert line.y == pytest.approx((0.8, 0.6, 0.1))
    assert line.spread == pytest.approx((0.02**0.5, 0.02**0.5, 0.0))


def test_the_deviation_of_a_curve_is_an_area_around_it(curves_chart):
    [panel] = panels_of(curves_chart)
    [band] = paths(panel, "band")
    corners = [float(y) for y in re.findall(r",([\d.]+)", band.get("d"))]
    ends = [0.8 + 0.02**0.5, 0.6 + 0.02**0.5, 0.1, 0.1, 0.6 - 0.02**0.5, 0.8 - 0.02**0.5]
    assert [value_of(panel, y) for y in corners] == pytest.approx(ends, abs=0.003)
    assert not paths(panel, "bar")
