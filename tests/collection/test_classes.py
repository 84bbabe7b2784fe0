"""A class is an id: names change, classes are merged and hidden, and no code, file of vectors or index follows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import Collection, HybridHasher, StarRidge, StarSHL
from starshl.collection.vocabulary import Event, Vocabulary
from starshl.exceptions import CollectionFormatError
from starshl.hashers.base import BaseHasher
from starshl.hashers.baselines import LSHash
from starshl.labeling import Lesson

NAMES = np.array(["zero", "one", "two", "three"])


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:160], NAMES[y[:160]]


@pytest.fixture(scope="module")
def hasher(digits: tuple[np.ndarray, np.ndarray]) -> StarRidge:
    return StarRidge(16, random_state=0).fit(*digits)


@pytest.fixture
def named(tmp_path: Path, digits: tuple[np.ndarray, np.ndarray], hasher: BaseHasher) -> Collection:
    X, y = digits
    collection = Collection.create(tmp_path / "items", hasher, vectors="float16")
    labels = y.astype(object)
    labels[::5] = None
    collection.add(X, labels=labels)
    return collection


def everything(collection: Collection) -> tuple[object, ...]:
    """Return codes and what is stored of each item: what no change of a name may touch."""
    return collection.codes(collection.ids).packed.tobytes(), collection.rows()


def test_a_renamed_class_has_its_new_name_everywhere_and_no_code_changes(
    named: Collection, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = digits
    before, space, counts = everything(named), named.space_id, named.label_counts()
    named.rename_class("two", "a pair")
    assert everything(named) == before
    assert named.space_id == space
    assert named.label_counts()["a pair"] == counts["two"]
    assert "two" not in named.label_counts()
    assert named.find(labels=["a pair"]).tolist() == [
        item for item, label in named.labels().items() if label == "a pair"
    ]
    assert {hit.label for hit in named.search(X[y == "two"][:1], k=3)[0]} <= {"a pair", None}
    assert named.classes == ["one", "three", "a pair", "zero"]
    assert named.predict(X[y == "two"][:5]).labels == ["a pair"] * 5
    np.testing.assert_array_equal(
        np.array(named.predict(X, probabilities=True).probabilities), named.hasher.predict_proba(X)
    )
    with pytest.warns(UserWarning, match="No item has"):
        assert not len(named.find(labels=["two"]))


def test_merged_classes_count_as_one_and_their_probabilities_are_added(
    named: Collection, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _y = digits
    before, counts = everything(named), named.label_counts()
    named.merge_classes("one", "two")
    assert everything(named) == before
    assert named.label_counts()["two"] == counts["one"] + counts["two"]
    assert len(named.find(labels=["one"])) == len(named.find(labels=["two"])) == counts["one"] + counts["two"]
    assert named.classes == ["two", "three", "zero"]
    shares, fitted = np.array(named.predict(X, probabilities=True).probabilities), named.hasher.predict_proba(X)
    np.testing.assert_allclose(shares, np.stack([fitted[:, 0] + fitted[:, 2], fitted[:, 1], fitted[:, 3]], axis=1))
    assert named.predict(X).labels == [named.classes[best] for best in shares.argmax(axis=1)]


def test_two_halves_of_a_class_beat_a_third_one_once_they_are_merged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.choice(["a", "b", "c"], 200)
    hasher = StarRidge(8, random_state=0).fit(X, y)
    with Collection.create(tmp_path / "noise", hasher) as collection:
        alone = collection.predict(X).labels
        collection.merge_classes("a", "b")
        merged = collection.predict(X).labels
    shares = hasher.predict_proba(X)
    turned = (shares[:, 2] > shares[:, :2].max(axis=1)) & (shares[:, 2] < shares[:, :2].sum(axis=1))
    assert turned.any()
    assert all(alone[row] == "c" and merged[row] == "b" for row in np.flatnonzero(turned))


def test_items_of_a_removed_class_have_no_label_until_that_is_undone(
    named: Collection, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _y = digits
    before, labels = everything(named), named.labels()
    named.remove_class("zero")
    assert everything(named) == before
    assert named.labels() == {item: label for item, label in labels.items() if label != "zero"}
    shares, fitted = np.array(named.predict(X, probabilities=True).probabilities), named.hasher.predict_proba(X)
    np.testing.assert_allclose(shares, fitted[:, :3] / fitted[:, :3].sum(axis=1, keepdims=True))
    assert "zero" not in named.predict(X).labels
    undone = named.undo_class_change()
    assert (undone.kind, undone.label, undone.undone) == ("remove", "zero", True)
    assert named.labels() == labels
    assert everything(named) == before


def test_changes_are_undone_in_turn_or_by_number_and_survive_a_new_opening(named: Collection) -> None:
    labels = named.labels()
    first = named.rename_class("one", "uno")
    named.merge_classes("uno", "two")
    named.remove_class("three")
    named.close()
    with Collection(named.folder) as collection:
        assert [(change.kind, change.label, change.into) for change in collection.class_changes()] == [
            ("rename", "one", "uno"),
            ("merge", "uno", "two"),
            ("remove", "three", None),
        ]
        collection.undo_class_change()
        collection.undo_class_change()
        assert set(collection.labels().values()) == {"zero", "uno", "two", "three"}
        collection.undo_class_change(first.number)
        assert collection.labels() == labels
        with pytest.raises(ValueError, match="nothing to undo"):
            collection.undo_class_change()
        with pytest.raises(ValueError, match="nothing to undo"):
            collection.undo_class_change(99)
        collection.verify()


def test_the_old_name_of_a_renamed_class_is_free_and_that_of_a_merged_one_is_not(named: Collection) -> None:
    named.rename_class("one", "uno")
    named.merge_classes("two", "three")
    with pytest.warns(UserWarning, match="does not know the label"):
        named.set_labels([0, 1], ["one", "two"])
    assert [item.label for item in named.get([0, 1])] == ["one", "three"]
    assert [item.code_from for item in named.get([0, 1])] == ["vector", "label"]
    with pytest.raises(ValueError, match="cannot be undone"):
        named.undo_class_change(named.class_changes()[0].number)
    named.rename_class("one", "eins")
    named.undo_class_change(named.class_changes()[0].number)
    assert {"one", "eins", "three"} <= set(named.labels().values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda each: each.rename_class("one", "two"), "merge them"),
        (lambda each: each.rename_class("oen", "x"), 'Did you mean "one"'),
        (lambda each: each.rename_class("one", "one"), "already"),
        (lambda each: each.rename_class("one", 1), "same type"),
        (lambda each: each.merge_classes("one", "one"), "same class"),
        (lambda each: each.merge_classes("one", "ten"), "No class"),
        (lambda each: each.remove_class("ten"), "No class"),
        (lambda each: each.rename_class("one", "\ud800"), "surrogate"),
        (lambda each: each.undo_class_change(), "nothing to undo"),
    ],
)
def test_changes_that_make_no_sense_are_refused_and_nothing_changes(named: Collection, change, words: str) -> None:
    before, version = everything(named), named.version
    with pytest.raises(ValueError, match=words):
        change(named)
    assert everything(named) == before
    assert named.version == version


@pytest.mark.parametrize("make", [StarRidge, StarSHL, HybridHasher])
def test_a_refit_learns_merged_classes_as_one_and_undoing_the_merger_keeps_its_codes(
    tmp_path: Path, digits: tuple[np.ndarray, np.ndarray], make: type[BaseHasher]
) -> None:
    X, y = digits
    n_bits = 32 if make is HybridHasher else 16
    with Collection.create(tmp_path / "items", make(n_bits, random_state=0).fit(X, y), vectors="float16") as collection:
        collection.add(X, labels=y)
        collection.merge_classes("one", "two")
        refitted = collection.refit()
        assert sorted(refitted.class_labels) == ["three", "two", "zero"]
        ones, twos = np.flatnonzero(y == "one"), np.flatnonzero(y == "two")
        if make is not HybridHasher:
            assert len(np.unique(collection.codes([*ones, *twos]).packed, axis=0)) == 1
        before = everything(collection)
        collection.undo_class_change()
        assert everything(collection) == before
        assert collection.label_counts()["one"] == len(ones)
        collection.set_labels(ones[:1], ["one"])
        assert collection.get(ones[:1])[0].code_from == "label"


def test_readers_in_other_objects_see_a_new_name_without_loading_codes_again(named: Collection) -> None:
    with Collection(named.folder, read_only=True) as reader:
        with reader.reading() as (before, _):
            pass
        named.rename_class("zero", "nil")
        assert "nil" in reader.label_counts()
        with reader.reading() as (after, _):
            assert after.hasher is before.hasher
        named.set_labels([0], ["nil"])
        assert reader.get([0])[0].label == "nil"


def test_an_answer_of_a_lesson_is_undone_under_the_name_that_its_class_has_now(named: Collection) -> None:
    item = next(item for item, label in named.labels().items() if label == "one")
    with Lesson(named) as lesson:
        lesson.answer([item], "two")
        named.rename_class("one", "uno")
        assert "uno" in lesson.classes
        lesson.undo()
    assert named.get([item])[0].label == "uno"
    assert "one" not in named.label_counts()


def test_exports_write_the_names_that_classes_have_now(named: Collection, tmp_path: Path) -> None:
    named.rename_class("two", "a pair")
    named.remove_class("three")
    named.export(tmp_path / "items.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert {line["label"] for line in lines} == {"zero", "one", "a pair", None}


def test_a_vocabulary_knows_what_a_name_meant_before() -> None:
    first = Vocabulary().with_names(['"a"', '"b"'], 1)
    then = first.renamed('"a"', '"c"', 2).with_names(['"a"'], 3)
    assert (then.id_of('"a"'), then.id_of('"c"')) == (2, 0)
    assert then.as_of(1).id_of('"a"') == 0
    assert then.label(0) == "c"
    merged = then.merged('"b"', '"c"', 4).without('"c"', 5)
    assert [merged.label(each) for each in range(3)] == [None, None, "a"]
    assert [merged.undone(None, 6).label(each) for each in range(3)] == ["c", "c", "a"]


@pytest.mark.parametrize(
    "events",
    [
        [Event(0, "add", 1, '"a"')],
        [Event(0, "rename", 0, '"a"')],
        [Event(0, "add", 0, '"a"'), Event(0, "add", 1, '"b"'), Event(1, "merge", 0, 1), Event(2, "merge", 1, 0)],
        [Event(0, "add", 0, '"a"'), Event(1, "merge", 0, 7)],
        [Event(0, "undo", 0)],
    ],
)
def test_events_that_cannot_follow_each_other_are_refused(events: list[Event]) -> None:
    with pytest.raises(ValueError):
        Vocabulary.replay(events)


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE vocabulary SET content = \'["add", 0, "\\"x\\""]\' WHERE number = 0',
        "UPDATE vocabulary SET version = 7 WHERE number = 0",
        "DELETE FROM vocabulary WHERE number = 4",
        "DELETE FROM vocabulary",
        "UPDATE vocabulary SET checksum = checksum + 1 WHERE number = 1",
        "UPDATE vocabulary SET number = 9 WHERE number = 0",
        "UPDATE meta SET value = '[[0, 1], 0]' WHERE name = 'model_classes'",
    ],
)
def test_a_damaged_vocabulary_is_refused(named: Collection, statement: str) -> None:
    import sqlite3

    named.rename_class("zero", "nil")
    named.close()
    with sqlite3.connect(named.folder / "items.sqlite") as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(CollectionFormatError):
        Collection(named.folder)


@pytest.mark.parametrize(("label", "name"), [("a", ""), (3, -1)])
def test_a_class_is_not_renamed_to_what_marks_items_without_a_label(
    tmp_path: Path, label: str | int, name: str | int
) -> None:
    rows = np.eye(4)
    with Collection.create(tmp_path / "items", LSHash(8, random_state=0).fit(rows)) as collection:
        collection.add(rows, labels=[label] * 4)
        with pytest.raises(ValueError, match="without a label"):
            collection.rename_class(label, name)
        assert collection.label_counts() == {label: 4}


@pytest.mark.filterwarnings("ignore")
def test_a_filter_on_a_label_passes_nothing_where_no_item_ever_had_one(tmp_path: Path) -> None:
    rows = np.eye(4)
    with Collection.create(tmp_path / "items", LSHash(8, random_state=0).fit(rows)) as collection:
        collection.add(rows)
        assert collection.find(labels=["nobody"]).tolist() == []
