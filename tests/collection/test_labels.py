"""Labels are part of an item: stored with the code that follows from them, and taken away without a trace."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starshl import BinaryCodes, Collection, StarRidge
from starshl.hashers.baselines import CodewordSVM, LSHash
from starshl.index.adapters.database import items_of

NAMES = np.array(["blue", "green", "red"])


@pytest.fixture(scope="module")
def labels(rows):
    return NAMES[np.argmax(rows[:, :3], axis=1)]


@pytest.fixture
def by_codewords(rows, labels, monkeypatch):
    """A fitted hasher that gives labeled items the codeword of their class, and others a code of their own."""

    def relabel(self, codes, y):
        own = codes.to_signs()
        for row, label in enumerate(y):
            place = np.flatnonzero(self.classes_ == label)
            if len(place):
                own[row] = self.codewords_[place[0]]
        return BinaryCodes.from_signs(own)

    def encode_database(self, X, y=None):
        return self.relabel(self.encode(X), [None] * len(X) if y is None else y)

    monkeypatch.setattr(CodewordSVM, "relabel", relabel, raising=False)
    monkeypatch.setattr(CodewordSVM, "encode_database", encode_database)
    monkeypatch.setattr(CodewordSVM, "supports", frozenset({"predict", "relabel"}))
    return CodewordSVM(16, random_state=0).fit(rows, labels)


@pytest.fixture
def collection(tmp_path, by_codewords, rows):
    with Collection.create(tmp_path / "items", by_codewords) as collection:
        collection.add(rows)
        yield collection


def state_of(collection):
    return collection.rows(), collection.codes(collection.ids).packed.tobytes()


def test_labeled_items_get_the_codes_that_the_hasher_gives_them(tmp_path, by_codewords, rows, labels):
    partly = [label if number % 2 else None for number, label in enumerate(labels)]
    with Collection.create(tmp_path / "items", by_codewords) as collection:
        collection.add(rows, labels=partly)
        assert collection.codes(np.arange(60)) == by_codewords.encode_database(rows, partly)
        items = collection.get(np.arange(60))
    assert [item.label for item in items] == partly
    assert [item.code_from for item in items] == ["label" if number % 2 else "vector" for number in range(60)]


def test_star_ridge_gives_the_same_codes_through_a_collection(tmp_path, rows, labels):
    hasher = StarRidge(16, random_state=0).fit(rows, labels)
    partly = [label if number % 2 else None for number, label in enumerate(labels)]
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=partly)
        assert collection.codes(np.arange(60)) == hasher.encode_database(rows, partly)
        collection.set_labels(np.arange(60), labels)
        assert collection.codes(np.arange(60)) == hasher.encode_database(rows, labels)
        collection.set_labels(np.arange(60), None)
        assert collection.codes(np.arange(60)) == hasher.encode_database(rows)


def test_labels_set_later_give_the_same_as_labels_given_at_once(collection, by_codewords, rows, labels):
    items = collection.set_labels(np.arange(60), labels)
    assert items == collection.get(np.arange(60))
    assert collection.codes(np.arange(60)) == by_codewords.encode_database(rows, labels)
    fresh = Collection(collection.folder, read_only=True)
    assert fresh.codes(np.arange(60)) == by_codewords.encode_database(rows, labels)
    assert fresh.verify() == 60
    fresh.close()


@pytest.mark.parametrize("nothing", [None, [None] * 60, [""] * 60, [float("nan")] * 60, [-1] * 60])
def test_a_label_that_is_taken_away_leaves_the_code_of_the_vector(collection, labels, nothing):
    before = state_of(collection)
    collection.set_labels(np.arange(60), labels)
    assert state_of(collection) != before
    collection.set_labels(np.arange(60), nothing)
    assert state_of(collection) == before


def test_hits_say_where_their_codes_come_from_and_labels_filter_them(collection, by_codewords, rows, labels):
    collection.set_labels(np.arange(30), labels[:30])
    hits = collection.search(rows[:1], k=60)[0]
    assert {hit.id: (hit.label, hit.code_from) for hit in hits} == {
        number: (labels[number], "label") if number < 30 else (None, "vector") for number in range(60)
    }
    wanted = ["red", "blue"]
    found = collection.search(rows[:1], k=60, labels=wanted)[0]
    assert found.hits == [hit for hit in hits if hit.label in wanted]
    assert collection.search_radius(rows[:1], 16, labels=wanted)[0] == found
    few = collection.search(rows[:1], k=60, labels=wanted, among=np.arange(5, 15))[0]
    assert few.hits == [hit for hit in found if 5 <= hit.id < 15]
    assert collection.search(rows[:1], labels="red") == collection.search(rows[:1], labels=["red"])
    assert [*map(len, collection.search(rows[:1], labels=["no such label"]))] == [0]


def test_a_label_of_an_unknown_class_is_stored_and_the_code_stays(collection, labels):
    before = collection.codes([3, 4])
    with pytest.warns(UserWarning, match=r'the label of 1 item.*"yellow"'):
        items = collection.set_labels([3, 4], ["yellow", None])
    assert [(item.label, item.code_from) for item in items] == [("yellow", "vector"), (None, "vector")]
    assert collection.codes([3, 4]) == before


def test_a_hasher_without_codewords_stores_labels_and_leaves_codes(folder, hasher, rows):
    with Collection(folder) as collection, warnings.catch_warnings():
        warnings.simplefilter("error")
        before = collection.codes(np.arange(60))
        items = collection.set_labels([3, 4, 5], [7, -1, 9])
        assert [(item.label, item.code_from) for item in items] == [(7, "vector"), (None, "vector"), (9, "vector")]
        assert collection.codes(np.arange(60)) == before
        assert items[0].metadata == {"label": 0, "price": 3, "name": "no 3"}


def test_a_hasher_whose_labels_decide_a_part_of_the_code_says_so_by_relabel(tmp_path, rows, monkeypatch):
    def relabel(self, codes, y):
        packed = codes.packed.copy()
        packed[:, 0] = y
        return BinaryCodes(packed, codes.n_bits)

    hasher = LSHash(24, random_state=0).fit(rows)
    hasher.classes_ = np.array([5, 6])
    monkeypatch.setattr(LSHash, "relabel", relabel, raising=False)
    monkeypatch.setattr(LSHash, "supports", frozenset({"relabel"}))
    own = hasher.encode(rows).packed
    with Collection.create(tmp_path / "items", hasher) as collection:
        collection.add(rows, labels=np.where(np.arange(60) < 30, 6, -1))
        found = collection.codes(np.arange(60)).packed
        assert (found[:30, 0] == 6).all()
        assert (found[:30, 1:] == own[:30, 1:]).all()
        assert (found[30:] == own[30:]).all()
        collection.set_labels(np.arange(60), None)
        assert (collection.codes(np.arange(60)).packed == own).all()


def test_another_hasher_gives_labeled_items_its_own_codewords(collection, rows, labels):
    partly = [label if number % 2 else None for number, label in enumerate(labels)]
    collection.set_labels(np.arange(60), partly)
    other = CodewordSVM(24, random_state=1).fit(rows, labels)
    collection.replace_hasher(other, np.arange(60), rows)
    assert collection.codes(np.arange(60)) == other.encode_database(rows, partly)
    assert [item.label for item in collection.get(np.arange(60))] == partly
    collection.set_labels(np.arange(60), None)
    assert collection.codes(np.arange(60)) == other.encode(rows)


@pytest.mark.parametrize("values", [["a", "b"], [3, 4], [True, False], [3.0, 4.0], ["日本", 'a"b\\']])
def test_labels_come_back_as_they_were(folder, values):
    with Collection(folder) as collection:
        items = collection.set_labels([3, 4], values)
        assert [item.label for item in items] == values
        assert [json.loads(json.dumps(item.label)) for item in collection.get([3, 4])] == values
        hits = collection.search(items=[0], k=60, labels=values[:1])[0]
        assert [hit.id for hit in hits] == [3]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda c, X: c.set_labels([3], [7]),
            ValueError,
            "numbers, such as 7",
        ),
        (lambda c, X: c.add(X[:1], labels=[7]), ValueError, "labels of the same"),
        (lambda c, X: c.set_labels([3, 777], ["red", "red"]), KeyError, "777 is not"),
        (lambda c, X: c.set_labels([3], ["red", "red"]), ValueError, "2 labels for 1 item"),
        (lambda c, X: c.set_labels([3], "red"), ValueError, "single label for 1"),
        (lambda c, X: c.set_labels([3, 3], ["red", "red"]), ValueError, "more than once"),
        (lambda c, X: c.set_labels([3, 4], ["red", 5]), ValueError, "mix numbers and text"),
        (lambda c, X: c.set_labels([3, 4], [True, 5]), ValueError, "labels mix booleans and numbers"),
        (lambda c, X: c.set_labels([3], [2.5]), ValueError, "labels name classes"),
        (lambda c, X: c.set_labels([3], [b"red"]), ValueError, "is a bytes; labels are"),
        (lambda c, X: c.set_labels([3], ["a\0b"]), ValueError, "the NUL character"),
        (lambda c, X: c.set_labels([3], ["a\0"]), ValueError, "the NUL character"),
        (lambda c, X: c.set_labels([3], ["\0"]), ValueError, "the NUL character"),
        (lambda c, X: c.add(X[:2], labels=["a", "\0"]), ValueError, "the NUL character"),
        (lambda c, X: c.add(X[:2], labels=[1, 2**63]), ValueError, "64 signed bits"),
        (lambda c, X: c.add(X[:2], labels=[1, 10**5000]), ValueError, "of 16610 bits"),
        (lambda c, X: c.add(X[:1], labels=np.array([2**63], np.uint64)), ValueError, "64 signed bits"),
        (lambda c, X: c.add(X[:1], labels=[1e30]), ValueError, "64 signed bits"),
        (lambda c, X: c.add(X[:2], labels=["red"]), ValueError, "1 label for 2 items"),
        (lambda c, X: c.search(X[:1], where={"label": "red"}), ValueError, "as labels="),
    ],
)
def test_bad_labels_change_nothing(collection, rows, change, error, message):
    before = state_of(collection)
    with pytest.raises(error, match=message):
        change(collection, rows)
    assert state_of(collection) == before
    assert collection.verify() == 60


def test_a_hasher_with_classes_of_another_type_is_refused_while_items_have_labels(collection, rows):
    hasher, ids = StarRidge(8, random_state=0).fit(rows, np.arange(60) % 3), np.arange(60)
    collection.set_labels([3], ["red"])
    before = state_of(collection)
    with pytest.raises(ValueError, match="classes of the new hasher"):
        collection.replace_hasher(hasher, ids, rows)
    assert state_of(collection) == before
    collection.set_labels([3], None)
    collection.replace_hasher(hasher, ids, rows)
    assert collection.set_labels([3], [2])[0].code_from == "label"


def test_labels_of_two_types_do_not_meet(folder):
    with Collection(folder) as collection:
        collection.set_labels([3, 4], ["a", "b"])
        with pytest.raises(ValueError, match="numbers, such as 1"):
            collection.set_labels([4], [1])
        collection.set_labels([3, 4], [1, 2])
        assert [item.label for item in collection.get([3, 4])] == [1, 2]


def test_replaced_items_keep_nothing_of_their_labels(collection, rows):
    collection.set_labels([3], ["red"])
    collection.upsert(rows[3:4], ids=[3])
    (item,) = collection.get([3])
    assert (item.label, item.code_from) == (None, "vector")
    assert collection.codes([3]) == collection.hasher.encode(rows[3:4])


def test_exported_items_have_their_labels(collection, tmp_path, labels):
    collection.set_labels(np.arange(10), labels[:10])
    collection.export(tmp_path / "items.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == [*labels[:10], *[None] * 50]
    assert [line["code_from"] for line in lines] == ["label"] * 10 + ["vector"] * 50


def test_labels_move_to_other_systems_as_metadata(collection):
    collection.update([1, 2], [{"page": 7}, {"label": "own"}])
    collection.set_labels([1, 2], ["red", "blue"])
    codes, ids, metadata = items_of(collection)
    assert [metadata[number] for number in (0, 1, 2)] == [{}, {"page": 7, "label": "red"}, {"label": "own"}]
    assert codes == collection.codes(ids)


changes = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
        st.sampled_from(["red", "green", "blue", None]),
        st.sampled_from(["label", "upsert", "remove"]),
    ),
    max_size=12,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=changes)
def test_any_sequence_of_changes_leaves_the_codes_that_the_last_labels_give(
    tmp_path_factory, by_codewords, rows, steps
):
    expected = dict.fromkeys(range(6))
    with Collection.create(tmp_path_factory.mktemp("any") / "items", by_codewords) as collection:
        collection.add(rows[:6])
        for ids, label, step in steps:
            present = [item for item in ids if item in expected]
            if step == "label":
                collection.set_labels(present, [label] * len(present))
            elif step == "upsert":
                collection.upsert(rows[ids], ids=ids, labels=[label] * len(ids))
                present = ids
            else:
                collection.remove(present)
            expected |= dict.fromkeys(present, label)
            if step == "remove":
                expected = {item: kept for item, kept in expected.items() if item not in present}
        left = sorted(expected)
        assert collection.ids.tolist() == left
        labels_left = [expected[item] for item in left]
        if left:
            assert collection.codes(left) == by_codewords.encode_database(rows[left], labels_left)
        assert [item.label for item in collection.get(left)] == labels_left
        assert collection.verify() == len(left)
