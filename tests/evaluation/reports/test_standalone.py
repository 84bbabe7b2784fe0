"""Charts as separate drawings: a legend that has room for every name."""

import re

import pytest

from starshl.evaluation.reports.document import Chart, Series
from starshl.evaluation.reports.svg import render_standalone

WIDEST_LETTER = 8  # pixels on average in a name of capital letters, with letters of 13 pixels


def drawing_of(names, n_charts=1):
    lines = tuple(Series(name, (4, 8), (0.5, 0.6)) for name in names)
    charts = [Chart("t", "bits", "accuracy", lines, (4, 8))] * n_charts
    return render_standalone(charts, {name: place for place, name in enumerate(names)}, title="A title")


def legend_of(drawing):
    entries = re.findall(r'<text class="entry" x="(\d+)" y="(\d+)">([^<]*)<', drawing)
    return [(int(x), int(y), name) for x, y, name in entries]


@pytest.mark.parametrize("n_charts", [1, 2])
@pytest.mark.parametrize("length", [5, 15, 43, 90])
def test_no_name_in_a_legend_runs_into_the_next_or_past_the_edge(length, n_charts):
    names = [f"{place} ".ljust(length, "x") for place in range(5)]
    drawing = drawing_of(names, n_charts)
    width = int(re.search(r'viewBox="0 0 (\d+) ', drawing).group(1))
    entries = legend_of(drawing)
    assert [name for _, _, name in entries] == names
    for x, y, name in entries:
        end = x + WIDEST_LETTER * len(name)
        assert end <= width
        assert all(end < other - 50 for other, row, _ in entries if row == y and other > x)


def test_short_names_stand_in_two_columns_under_each_chart():
    names = [f"m{place}" for place in range(6)]
    assert len({x for x, _, _ in legend_of(drawing_of(names))}) == 2
    assert len({x for x, _, _ in legend_of(drawing_of(names, n_charts=2))}) == 4


def differences(title, y):
    return Chart(
        title,
        "data set",
        "gain",
        (Series("a", (0, 1), y, tuple(abs(v) / 20 for v in y)),),
        (0, 1),
        tick_names=("x", "y"),
        zero="the base row",
    )


def test_charts_of_differences_share_one_axis_that_names_zero():
    drawing = render_standalone([differences("p", (0.2, 0.1)), differences("q", (0.01, -0.3))], {"a": 0}, title="t")
    marked = [re.findall(r'text-anchor="end">([^<]*)<', panel) for panel in drawing.split('class="caption"')[1:]]
    assert marked[0] == marked[1]
    numbers = [float(text) for text in marked[0] if re.fullmatch(r"-?[\d.]+", text)]
    assert (min(numbers), max(numbers)) == (-0.2, 0.2)
    assert "0: the base row" in " ".join(marked[0])
    assert drawing.count('class="zero"') == 2


def test_a_legend_shows_lines_only_if_the_chart_has_them():
    assert 'class="line"' in drawing_of(["a"])
    assert 'class="line"' not in render_standalone([differences("p", (0.2, 0.1))], {"a": 0}, title="t")


def test_a_drawing_says_that_points_are_moved_if_they_are():
    assert "moved a little sideways" not in drawing_of(["a", "b"])
    line = Series("a", (4, 8), (0.5, 0.6), (0.1, 0.1))
    drawing = render_standalone([Chart("t", "bits", "accuracy", (line,), (4, 8))], {"a": 0}, title="t")
    assert "moved a little sideways" in drawing


def test_differences_of_zero_have_a_drawing_too():
    assert 'class="zero"' in render_standalone([differences("p", (0.0, 0.0))], {"a": 0}, title="t")
