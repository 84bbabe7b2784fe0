"""The parts of the anchors on CIFAR-10 (benchmarks/anchors) that read pictures and write the table."""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "benchmarks" / "anchors"


@pytest.fixture
def part(monkeypatch):
    """Return a file of the benchmark by name; what it brings in is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield import_module
    for name in ("color", "network", "published", "table"):
        if name not in before:
            sys.modules.pop(name, None)


@pytest.fixture
def sheets(tmp_path):
    """A folder like the package: two pictures per sheet, whose labels count from 0."""
    colors = np.random.default_rng(0).integers(0, 256, (12, 1024, 3), dtype=np.uint8)
    names = [*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png"]
    for name, pair in zip(names, colors.reshape(6, 2, 1024, 3), strict=True):
        Image.fromarray(pair).save(tmp_path / name)
    (tmp_path / "train_lables.json").write_text(json.dumps(list(range(10))))
    (tmp_path / "test_lables.json").write_text(json.dumps([0, 1]))
    return tmp_path, colors


def test_sheets_become_rows_in_the_order_of_the_data_set(part, sheets):
    folder, colors = sheets
    X, y = part("color").read_colors(folder)
    np.testing.assert_array_equal(X, colors.reshape(12, 3072))
    assert y.tolist() == [*range(10), 0, 1]


def test_color_pictures_are_taken_if_they_are_those_of_the_gray_data_set(part, sheets, tmp_path):
    _, colors = sheets
    gray = np.stack([np.asarray(Image.fromarray(row[None]).convert("L"))[0] for row in colors])
    np.savez(tmp_path / "colors.npz", X=colors.reshape(12, 3072))
    pictures = part("network").read_pictures(tmp_path / "colors.npz", gray)
    np.testing.assert_array_equal(pictures.reshape(12, 1024, 3), colors)


def test_color_pictures_in_another_order_are_refused(part, sheets, tmp_path):
    _, colors = sheets
    gray = np.stack([np.asarray(Image.fromarray(row[None]).convert("L"))[0] for row in colors])
    np.savez(tmp_path / "colors.npz", X=colors[::-1].reshape(12, 3072))
    with pytest.raises(SystemExit, match="not the gray ones"):
        part("network").read_pictures(tmp_path / "colors.npz", gray)


def test_the_table_gives_mean_and_deviation_over_runs_and_marks_the_codes(part):
    lines = [
        {
            "protocol": "rows",
            "features": "gist",
            "run": run,
            "work": "SDH",
            "rows": [{"bits": 12, "map": 0.4 + run / 10, "map_known_labels": 0.6}],
        }
        for run in range(2)
    ]
    text = part("table").table(lines, (12,))
    assert "| gist | SDH | out of sample | 0.450 ± 0.071 | 2 | measured here |" in text
    assert "| gist | SDH | known labels | 0.600 ± 0.000 | 2 | measured here |" in text


def test_the_gap_to_another_method_is_that_of_the_runs_they_share(part):
    def line(method, run, value):
        return {
            "protocol": "rows",
            "features": "gist",
            "run": run,
            "work": method,
            "rows": [{"bits": 12, "map": value}],
        }

    lines = [line("StarRidge", run, 0.5 + run / 100) for run in range(4)]
    lines += [line("SDH", run, 0.4 + run / 100) for run in range(3)] + [line("ITQ", 9, 0.1)]
    text = part("table").gaps(lines, (12,)).splitlines()
    assert text[0] == "| features | StarRidge minus | 12 bits |"
    assert text[2:] == ["| gist | ITQ | - |", "| gist | SDH | +0.100 (+0.100 to +0.100) |"]


def test_the_page_begins_with_the_best_of_the_stored_figures_and_shows_all_of_them(part):
    root = FOLDER.parents[1]
    stored = (root / "results" / "defaults" / "anchors.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in stored.splitlines()]
    page = (root / "docs" / "anchors.md").read_text(encoding="utf-8")
    tables = part("table")
    for make in (tables.glance, tables.table, tables.gaps):
        assert make(lines, (12, 24, 32, 48)) in page
    assert page.index("**StarRidge is first at every length") < page.index(tables.glance(lines, (12, 24, 32, 48)))


def test_methods_have_the_names_of_the_pages_of_results(part):
    lines = [
        {"protocol": "cifar10-1000q-5000t", "features": "gist", "run": 0, "work": method, "rows": [{"map": value}]}
        for method, value in (("SDH", 0.2), ("StarSHL", 0.4), ("StarSHL paper", 0.3))
    ]
    tables = part("table")
    assert tables.glance(lines, (12,)).splitlines()[2:] == [
        "| SDH | 0.200 | 0.396 | - | 0.454 |",
        r"| \*SHL, defaults | 0.400 | - | - | - |",
        r"| \*SHL, paper settings | 0.300 | - | - | - |",
    ]
    assert r"| gist | \*SHL, paper settings | out of sample | 0.300 |" in tables.table(lines, (12,))
