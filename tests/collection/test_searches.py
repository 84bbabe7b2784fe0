"""Searches over codes: what they find, in which order, and among which items."""

from itertools import pairwise

import numpy as np
import pytest

from starshl import Collection
from starshl.collection import Hit
from starshl.exceptions import CollectionError
from starshl.hashers.baselines import LSHash


def test_search_agrees_with_brute_force_over_codes(folder, hasher, rows):
    with Collection(folder) as collection:
        found = collection.search(rows[:5], k=7)
        distances = hasher.encode(rows[:5]).distances(hasher.encode(rows))
        for q, hits in enumerate(found):
            order = np.argsort(distances[q], kind="stable")[:7]
            assert [(hit.id, hit.distance) for hit in hits] == [(i, distances[q, i]) for i in order]
        assert found[0][0] == Hit(
            id=0,
            distance=0,
            probability=None,
            rescored=None,
            label=None,
            metadata={"label": 0, "price": 0, "name": "no 0"},
            reference="images/0.png",
            code_from="vector",
        )


def test_search_by_item_is_search_by_its_vector(folder, rows):
    with Collection(folder) as collection:
        assert collection.search(items=[3, 9], k=5) == collection.search(rows[[3, 9]], k=5)
        assert collection.search_radius(items=[3], radius=6) == collection.search_radius(rows[[3]], 6)


def test_scores_order_items_at_equal_distance(folder, hasher, rows):
    with Collection(folder) as collection:
        hits = collection.search(rows[:1], k=60, by_scores=True)[0]
    similarity = hasher.transform(rows) @ hasher.decision_function(rows[:1])[0]
    keys = [(hit.distance, -similarity[hit.id]) for hit in hits]
    assert all(a[0] < b[0] or a[1] <= b[1] + 1e-9 for a, b in pairwise(keys))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"label": 1}, [i for i in range(60) if i % 3 == 1]),
        ({"label": {"!=": 1}, "price": {">=": 50}}, [i for i in range(50, 60) if i % 3 != 1]),
        ({"price": {">": 5, "<": 8}}, [6, 7]),
        ({"name": {"in": ["no 4", "no 40"]}}, [4, 40]),
        ({"name": {">": 5}}, []),
        ({"name": "x' OR 1=1 --"}, []),
    ],
)
def test_filters_choose_by_metadata(folder, rows, where, expected):
    with Collection(folder) as collection:
        hits = collection.search(rows[:1], k=60, where=where)[0]
        assert sorted(hit.id for hit in hits) == expected
        near = collection.search_radius(rows[:1], 24, where=where)[0]
        assert near == hits


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"lable": 1}, "Did you mean 'label'"),
        ({"label": 1, "x') OR 1=1 --": 1}, "There are: label, name, price"),
        ({"missing": {"!=": 1}}, "'missing', but no item"),
    ],
)
def test_a_filter_on_an_unknown_name_is_refused(folder, rows, where, message):
    with Collection(folder) as collection:
        with pytest.raises(ValueError, match=message):
            collection.search(rows[:1], where=where)
        with pytest.raises(ValueError, match=message):
            collection.search_radius(rows[:1], 24, where=where)


def test_an_empty_filter_lets_all_items_pass(folder, rows):
    with Collection(folder) as collection:
        assert collection.find({}).tolist() == collection.find().tolist() == list(range(60))
        assert collection.find({}, among=[3, 99]).tolist() == [3]
        assert collection.search(rows[:2], where={}) == collection.search(rows[:2])


def test_removed_ids_are_returned(folder):
    with Collection(folder) as collection:
        assert collection.remove([7, 3]).tolist() == [7, 3]
        assert collection.remove(collection.find({"price": {"<": 5}})).tolist() == [0, 1, 2, 4]


def test_a_filter_on_a_known_name_may_find_nothing(folder, tmp_path, hasher, rows):
    with Collection(folder) as collection:
        assert [*map(len, collection.search(rows[:2], where={"label": 77}))] == [0, 0]
    with Collection.create(tmp_path / "empty", hasher) as collection:
        assert [*map(len, collection.search(rows[:2], where={"label": 77}))] == [0, 0]


def test_among_and_where_combine(folder, rows):
    def ids(collection, **filters):
        hits = collection.search(rows[:1], k=60, **filters)[0]
        assert collection.search_radius(rows[:1], 24, **filters)[0] == hits
        return sorted(hit.id for hit in hits)

    with Collection(folder) as collection:
        assert ids(collection, among=[5, 3, 3, 9]) == [3, 5, 9]
        assert ids(collection, among=[5, 3, 9], where={"label": 0}) == [3, 9]
        assert ids(collection, among=[]) == []
        assert ids(collection, among=[3, 777]) == [3]


def test_a_search_for_more_items_than_there_are_returns_them_all(folder, tmp_path, hasher, rows):
    with Collection(folder) as collection:
        assert collection.search(rows[:2], k=1000) == collection.search(rows[:2], k=60)
    with Collection.create(tmp_path / "empty", hasher) as collection:
        assert [*map(len, collection.search(rows[:2], k=3))] == [0, 0]
        assert [*map(len, collection.search_radius(rows[:2], 3))] == [0, 0]


def test_a_search_by_scores_encodes_once(folder, rows, monkeypatch):
    calls = []
    real = LSHash.decision_function
    monkeypatch.setattr(LSHash, "decision_function", lambda self, X: calls.append(len(X)) or real(self, X))
    with Collection(folder) as collection:
        calls.clear()
        collection.search(rows[:4], by_scores=True)
    assert calls == [4]


@pytest.mark.parametrize(
    "name",
    ["é", "日本", "🙂", "a\\b", "\\u00e9", "a\nb", "\t", "\x7f", "a/b", "a.b", "[0]", "$", "a'b"],
)
def test_filters_find_every_name_that_metadata_can_have(folder, rows, name):
    def found(collection, where):
        return sorted(hit.id for hit in collection.search(rows[:1], k=60, where=where)[0])

    with Collection(folder) as collection:
        collection.update([4, 5, 6], [{name: 1, "other": 0}, {name: 2}, {"other": 1}])
        assert found(collection, {name: 1}) == [4]
        assert found(collection, {name: {"!=": 1}}) == [5]
        assert found(collection, {name: {">": 0}}) == [4, 5]
        assert found(collection, {name: {"in": [2, 3]}}) == [5]


def test_text_that_looks_like_an_escaped_nul_is_no_nul(folder, rows):
    metadata = {"a": r"\u0000", r"\u0000": r"\\u0000"}
    with Collection(folder) as collection:
        collection.update([4], [metadata])
        assert collection.get([4])[0].metadata == metadata
        assert [hit.id for hit in collection.search(rows[:1], where={"a": r"\u0000"})[0]] == [4]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([], "it must be a dictionary"),
        ("label = 1", "it must be a dictionary"),
        ({"label": {"like": 1}}, "uses 'like'; comparisons are =, !="),
        ({"label": {}}, "is empty"),
        ({"label": {"in": []}}, "give a list of values"),
        ({"label": None}, "with a NoneType"),
        ({'la"bel': 1}, "cannot name a metadata field"),
        ({"label": 2**70}, "fit in 64 bits"),
        ({"la\0bel": 1}, "the NUL character"),
        ({"label": "a\0b"}, "the NUL character"),
        ({"label": {"in": ["a", "\0"]}}, "the NUL character"),
        ({"label": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_bad_filters_are_refused(folder, rows, where, message):
    with Collection(folder) as collection, pytest.raises(ValueError, match=message):
        collection.search(rows[:1], where=where)


def test_a_search_that_fails_does_not_speak_of_changes(folder, rows):
    where = {f"field {number}": 1 for number in range(1500)}
    with Collection(folder) as collection:
        with pytest.raises(CollectionError, match=r"fewer conditions.*Nothing was read"):
            collection.search(rows[:1], where=where)
        assert len(collection.search(rows[:1], k=3)[0]) == 3


@pytest.mark.parametrize("vectors", [None, "float16"])
def test_a_search_by_scores_for_stored_items_is_refused_however_they_are_kept(tmp_path, rows, vectors):
    with Collection.create(tmp_path / "items", LSHash(16, random_state=0).fit(rows), vectors=vectors) as collection:
        ids = collection.add(rows)
        with pytest.raises(ValueError, match="by_scores needs X"):
            collection.search(items=ids[:2], by_scores=True)


def test_a_label_that_no_item_has_gets_a_warning(tmp_path):
    X = np.eye(6)
    with Collection.create(tmp_path / "c", LSHash(8, random_state=0).fit(X)) as collection:
        collection.add(X, labels=["sport", "sport", "money", "money", None, None])
        with pytest.warns(UserWarning, match=r'"Sprot".*Did you mean "sport"'):
            assert [*map(len, collection.search(X[:1], labels=["Sprot"]))] == [0]
        with pytest.warns(UserWarning, match=r'the label "art".*There are'):
            assert len(collection.search(X[:1], labels=["sport", "art"])[0]) == 2
