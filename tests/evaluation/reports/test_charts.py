"""Charts: deviations in full, looks that differ, the upper part enlarged."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from starshl.evaluation.reports.charts import LOOKS, render_chart
from starshl.evaluation.reports.document import Chart, Document, Section, Series
from starshl.evaluation.reports.html import render_page

TOP, BOTTOM = 14, 264


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
    for bar, mean, deviation in zip(bars, line.y, line.deviations, strict=True):
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


def test_moved_points_stay_within_a_fifth_of_the_way_to_their_neighbors():
    lengths = tuple(range(5, 50, 5))
    lines = tuple(Series(f"m{k}", lengths, (0.5,) * 9, (0.1,) * 9) for k in range(14))
    [panel] = panels_of(Chart("t", "bits", "P@10", lines, lengths))
    ticks = [float(re.match(r"M([\d.]+),\d+v", path.get("d")).group(1)) for path in paths(panel, "grid")[-9:]]
    for number, mark in enumerate(paths(panel, "mark")):
        x = float(re.search(r"translate\(([\d.]+),", mark.get("transform")).group(1))
        assert abs(x - ticks[number % 9]) <= 0.21 * (ticks[1] - ticks[0])


def test_lines_without_bars_are_not_moved():
    lines = tuple(Series(f"m{k}", (8, 16), (0.5, 0.6)) for k in range(2))
    [panel] = panels_of(Chart("t", "bits", "P@10", lines, (8, 16)))
    assert len({path.get("transform") for path in paths(panel, "mark")}) == 2


def weak_and_strong():
    strong = tuple(Series(f"s{k}", (5, 15, 45), (0.93, 0.95 + k / 500, 0.96), (0.01,) * 3) for k in range(4))
    weak = Series("weak", (5, 15, 45), (0.2, 0.3, 0.4), (0.3, 0.02, 0.02))
    star = Series("star", (5, 15, 45), (0.92, 0.97, 0.98), (0.005,) * 3, emphasized=True)
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


def test_emphasized_lines_are_drawn_last():
    for panel in panels_of(weak_and_strong()):
        assert [group.get("data-name") for group in panel.iter("g")][-1] == "star"


def test_fourteen_looks_differ_without_color():
    assert len(LOOKS) == 14
    assert len({(look.marker, look.hollow) for look in LOOKS}) == 14
    assert len({(look.marker, look.dash) for look in LOOKS}) == 14
    assert len({look.color for look in LOOKS[:8]}) == 8


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


def test_powers_of_ten_are_marked_and_equally_far_apart_on_a_logarithmic_axis():
    lines = tuple(Series(f"m{k}", (10, 100, 1000), (0.02, 0.2 * k, 20.0)) for k in (1, 2, 3))
    [panel] = panels_of(Chart("t", "rows", "seconds", lines, (10, 100, 1000), log_x=True, log_y=True))
    texts = [text for text in panel.iter("text") if text.get("text-anchor") == "end"]
    assert [float(text.text) for text in texts] == [0.01, 0.1, 1, 10, 100]
    assert np.ptp(np.diff([float(text.get("y")) for text in texts])) < 0.2
    heights = [float(re.search(r",([\d.]+)\)", mark.get("transform")).group(1)) for mark in paths(panel, "mark")][:3]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2] - (BOTTOM - TOP) / 4, abs=0.2)
