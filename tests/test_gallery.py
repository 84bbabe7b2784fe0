"""The gallery page: it shows every method, and says what was measured."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from starshl.data import datasets
from starshl.evaluation import precision_at
from starshl.hashers import configurations
from starshl.hashers.catalog import METHODS
from starshl.reproduction import Sampling, draw_rows, split_data

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import gallery  # noqa: E402
from gallery_pictures import Box, _free_place, _runs, draw_map, draw_retrieved  # noqa: E402

NAMES = [method.name for method in configurations()]
TITLES = [method.title for method in configurations()]


@pytest.fixture(scope="module")
def figures():
    return json.loads((ROOT / "docs" / "gallery.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small_run():
    """Two quick methods on 120 digits and 40 queries."""
    dataset = datasets.get("digits")
    split = draw_rows(Sampling(n_train=120, n_query=40), dataset, 0, "gallery")
    data = split_data(dataset, split, scaling="unit", dtype=np.float64)
    quick = [method for method in configurations() if method.name in ("LSHash", "ITQ CCA")]
    return data, gallery.measure_dataset("digits", data, quick)


def test_the_page_and_its_pictures_are_what_the_figures_say(figures):
    for name, text in gallery.written_files(figures).items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: python scripts/gallery.py --draw"


def test_every_method_of_the_catalog_is_measured_and_shown(figures):
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(METHODS) == {line["method"] for line in figures["datasets"][0]["methods"]}
    for found in figures["datasets"]:
        assert sorted(line["variant"] for line in found["methods"]) == sorted(NAMES), "run: python scripts/gallery.py"
    for title in TITLES:
        shown = sum(text.count(f"\n| {title}{after}") for after in (" |", " (`", ", 64 bits", ", 784 bits"))
        assert shown == len(figures["datasets"])


@pytest.mark.parametrize("name", ["gallery_map.svg", "gallery_retrieved.svg"])
def test_pictures_are_well_formed_and_name_every_method(name):
    picture = ElementTree.parse(ROOT / "docs" / name)
    words = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert set(TITLES) <= set(words)


def test_measured_precision_is_that_of_the_evaluation(small_run):
    data, found = small_run
    method = next(method for method in configurations() if method.name == "ITQ CCA")
    hasher = gallery.make_hasher(method, 64).fit(data.X_train, data.y_train)
    codes = hasher.encode(data.X_query), hasher.encode(data.X_database)
    line = next(line for line in found["methods"] if line["variant"] == "ITQ CCA")
    assert line["precision"] == pytest.approx(precision_at(*codes, data.y_query, data.y_database), abs=1e-4)
    assert line["fit_seconds"] > 0
    assert line["model_bytes"] > 32 * 64 * 8


def test_retrieved_rows_are_rows_of_the_database_and_marked_by_their_class(small_run):
    data, found = small_run
    retrieved = found["retrieved"]
    assert retrieved["query"] in data.split.query
    labels = datasets.get("digits").y
    assert labels[retrieved["query"]] == retrieved["label"]
    for row in retrieved["found"].values():
        assert set(row["rows"]) <= set(data.split.database.tolist())
        assert (labels[row["rows"]] == retrieved["label"]).tolist() == row["right"]


def test_euclidean_figures_agree_with_a_loop(small_run):
    data, found = small_run
    precisions = []
    for query, label in zip(data.X_query, data.y_query, strict=True):
        order = np.argsort(((data.X_database - query) ** 2).sum(axis=1))
        precisions.append(np.mean(data.y_database[order[:10]] == label))
    assert found["euclidean"]["precision"] == pytest.approx(np.mean(precisions), abs=1e-4)


def test_pictures_of_a_run_are_drawn(small_run):
    _, found = small_run
    for picture in (draw_map(found), draw_retrieved(found, datasets.get("digits").X)):
        ElementTree.fromstring(picture)


def test_labels_evade_what_is_taken():
    area = Box(0, 0, 200, 100)
    first = _free_place(50, 50, 40, area, [])
    second = _free_place(50, 50, 40, area, [first])
    assert first.left > 50
    assert not second.meets(first)
    assert _free_place(195, 50, 40, area, []).right <= 200


def test_runs_of_a_line_by_hand():
    assert _runs(np.array([True, True, False, False, True])) == [(0, 2), (4, 1)]
    assert _runs(np.zeros(3, bool)) == []


def test_methods_measured_alone_join_the_stored_figures(figures):
    before = {"datasets": [json.loads(json.dumps(figures["datasets"][0]))]}
    lines, found = before["datasets"][0]["methods"], before["datasets"][0]["retrieved"]["found"]
    stored = {line["variant"]: line for line in lines}
    lines.remove(stored["LSHash"])
    del found["LSHash"]
    gallery.measure_some(before, ["LSHash"])
    lines = before["datasets"][0]["methods"]
    assert [line["variant"] for line in lines] == NAMES
    assert list(before["datasets"][0]["retrieved"]["found"]) == NAMES
    measured = next(line for line in lines if line["variant"] == "LSHash")
    assert measured["precision"] == pytest.approx(stored["LSHash"]["precision"], abs=0.002)
    assert [line for line in lines if line["method"] != "LSHash"] == [
        line for line in figures["datasets"][0]["methods"] if line["method"] != "LSHash"
    ]
