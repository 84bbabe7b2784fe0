import csv

import numpy as np
import pytest

from starshl import Collection
from starshl.data.tables import Columns, read_table
from starshl.labeling import Lesson, export_atlas, export_labels


@pytest.fixture
def lesson(collection, points):
    with Lesson(collection) as opened:
        for group, name in enumerate(["ant", "bee", "cow, brown"]):
            opened.answer(100 + np.flatnonzero(points[1] == group)[:2], name)
        yield opened


def test_labels_are_written_with_their_source(lesson, tmp_path):
    assert export_labels(lesson.collection, tmp_path / "labels.csv") == 120
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    predictions = lesson.predictions()
    assert [int(row["id"]) for row in rows] == lesson.ids.tolist()
    assert [row["label"] for row in rows] == predictions.labels
    assert [row["source"] == "given" for row in rows] == predictions.given.tolist()
    assert rows[0]["reference"] == "0.png"
    assert {row["confidence"] for row in rows if row["source"] == "given"} == {"1.0000"}


def test_text_in_labels_is_no_formula_to_a_spreadsheet_and_comes_back_as_it_was(collection, tmp_path):
    names = ["=1+1", "+5", "-5", "@sum", "'=1", "it's", "plain"]
    with Lesson(collection) as opened:
        for item, name in enumerate(names):
            opened.answer([100 + item], name)
        export_labels(collection, tmp_path / "labels.csv")
        labels = opened.predictions().labels
    with (tmp_path / "labels.csv").open(newline="") as file:
        cells = [row["label"] for row in csv.DictReader(file)]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert cells[:2] == ["'=1+1", "'+5"]
    table = read_table(tmp_path / "labels.csv", Columns(labels="label", drop=("reference", "source", "confidence")))
    assert table.y.tolist() == labels


def test_viewers_find_places_neighbors_and_codes(lesson, collection, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from starshl.index.adapters import read_parquet

    assert export_atlas(lesson, tmp_path / "lesson.parquet") == 120
    table = parquet.read_table(tmp_path / "lesson.parquet").to_pydict()
    assert table["id"] == lesson.ids.tolist()
    assert table["label"] == lesson.predictions().labels
    assert min(table["x"] + table["y"]) >= 0
    assert max(table["x"] + table["y"]) <= 1
    for place, neighbors in enumerate(table["neighbors"]):
        assert place not in neighbors["ids"]
        assert len(neighbors["ids"]) == 7, "viewers read them as a table"
        assert neighbors["distances"] == sorted(neighbors["distances"])
    codes, ids = read_parquet(tmp_path / "lesson.parquet")
    assert np.array_equal(codes.packed, collection.codes(ids).packed)


def test_an_outlier_has_as_many_neighbors_as_all_others(tmp_path, points, hasher):
    rows = np.vstack([points[0], [1e4] * 5])
    with Collection.create(tmp_path / "far", hasher, vectors="float16") as collection:
        collection.add(rows)
        with Lesson(collection) as lesson:
            kept, found = collection.vectors(collection.ids), lesson.neighbors()
    assert {len(each["ids"]) for each in found} == {7}
    order = np.argsort(np.linalg.norm(kept - kept[-1], axis=1))
    assert found[-1]["ids"] == order[order != len(rows) - 1][:7].tolist()


def test_neighbors_are_mostly_of_one_group(lesson, points):
    groups = points[1]
    same = [groups[near] == groups[place] for place, each in enumerate(lesson.neighbors()) for near in each["ids"]]
    assert np.mean(same) > 0.95


def test_labels_are_empty_before_the_first_answer(collection, tmp_path):
    with Lesson(collection) as lesson:
        export_labels(lesson.collection, tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text().splitlines()[1] == "100,0.png,,,0.0000"
