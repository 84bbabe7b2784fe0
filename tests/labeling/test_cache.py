"""Neighbors and maps are computed once, and what was kept of them is used only for the very same items."""

import numpy as np
import pytest

from starshl import Collection
from starshl._common.bundle import read_bundle, write_bundle
from starshl.labeling import Lesson, items

GRAPH, MAP = ".lesson-graph.star", ".lesson-map.star"


@pytest.fixture
def counted(monkeypatch):
    """How often neighbors and maps were computed."""
    made = []
    of_rows, map_items = items.Neighborhood.of_rows, items.map_items
    monkeypatch.setattr(items.Neighborhood, "of_rows", lambda *given: made.append("graph") or of_rows(*given))
    monkeypatch.setattr(items, "map_items", lambda *given, **named: made.append("map") or map_items(*given, **named))
    return made


def seen(collection):
    """What a lesson shows that depends on neighbors, bit by bit."""
    with Lesson(collection) as lesson:
        places = lesson.map()
        return lesson.neighbors(), lesson.propose(5), places.x.tobytes(), places.y.tobytes()


def test_a_second_start_finds_neighbors_and_map_as_they_were(collection, counted):
    folder, first = collection.folder, seen(collection)
    collection.close()
    with Collection(folder) as again:
        assert seen(again) == first
    assert counted == ["graph", "map"]


def test_labels_and_answers_leave_what_was_kept_as_it_is(collection, points, counted):
    with Lesson(collection) as lesson:
        for group, name in enumerate(("ant", "bee")):
            lesson.answer(100 + np.flatnonzero(points[1] == group)[:2], name)
        lesson.refit()
        assert lesson.wait_for_codes(60)
        assert lesson.codes().error is None
    Lesson(collection).close()
    assert counted == ["graph"]


@pytest.mark.parametrize("change", ["added", "removed", "moved"])
def test_other_items_have_other_neighbors(collection, points, counted, change):
    before = seen(collection)
    if change == "added":
        collection.add(points[0][:1] + 0.5)
    elif change == "removed":
        collection.remove([150])
    else:
        collection.upsert(points[0][:1] + 9.0, ids=[150])
    after = seen(collection)
    assert counted == ["graph", "map"] * 2
    assert after != before


@pytest.mark.parametrize("damage", ["cut short", "of another format", "with other bytes", "not a file", "missing"])
def test_a_file_that_cannot_be_used_is_made_again(collection, counted, damage):
    first = seen(collection)
    for name in (GRAPH, MAP):
        path = collection.folder / name
        content = path.read_bytes()
        if damage == "cut short":
            path.write_bytes(content[: len(content) // 2])
        elif damage == "of another format":
            path.write_text("words")
        elif damage == "with other bytes":
            path.write_bytes(content[:-8] + bytes(8))
        else:
            path.unlink()
            if damage == "not a file":
                path.mkdir()
    assert seen(collection) == first
    assert counted == ["graph", "map"] * 2


@pytest.mark.parametrize("name", ["coordinates", "variances", "vectors", "columns", "ends", "values"])
@pytest.mark.parametrize("change", ["is missing", "is too short", "holds what it cannot"])
def test_arrays_that_cannot_be_neighbors_are_not_used(collection, counted, name, change):
    first = seen(collection)
    header, arrays = read_bundle(collection.folder / GRAPH)
    if change == "is missing":
        del arrays[name]
    elif change == "is too short":
        arrays[name] = arrays[name][:-1]
    else:
        arrays[name] = arrays[name].copy()
        arrays[name].flat[0] = np.nan if arrays[name].dtype.kind == "f" else 10**9
    write_bundle(collection.folder / GRAPH, {key: header[key] for key in ("kind", "origin")}, arrays)
    assert seen(collection) == first
    assert counted == ["graph", "map", "graph"]


def test_a_folder_that_takes_no_files_is_taught_all_the_same(collection, counted, full_disk, caplog):
    with full_disk(64):
        assert seen(collection) == seen(collection)
    assert counted == ["graph", "map"] * 2
    assert "could not be kept" in caplog.text


def test_what_a_killed_process_left_is_cleared_away(collection):
    left = collection.folder / f".{GRAPH}.0a1b.partial"
    left.write_bytes(b"half")
    Lesson(collection).close()
    assert not left.exists()
    assert (collection.folder / GRAPH).exists()
