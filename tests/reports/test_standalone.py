"""Charts as separate drawings: a legend that has room for every name."""

import re

import pytest

from starshl.reports.document import Chart, Series
from starshl.reports.standalone import render_standalone

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
