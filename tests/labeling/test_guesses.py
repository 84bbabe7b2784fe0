"""Guesses: derived, never labels; known as stale; reviewed in one change that can be undone."""

import json

import numpy as np
import pytest

from starshl import Collection, StarRidge
from starshl.labeling import (
    Lesson,
    accept_guesses,
    export_labels,
    guess_labels,
    reject_guesses,
    undo_last,
)

NAMES = ["ant", "bee", "cow"]


@pytest.fixture
def lesson(collection, points):
    """A lesson in which two of each group have a label."""
    with Lesson(collection) as opened:
        for group, name in enumerate(NAMES):
            opened.answer(100 + np.flatnonzero(points[1] == group)[:2], name)
        yield opened


def test_guesses_are_those_of_the_lesson_and_are_no_labels(lesson, collection):
    guesses, predictions = collection.guesses(), lesson.predictions()
    assert guesses.ids.tolist() == predictions.ids[~predictions.given].tolist()
    assert [guess.label for guess in guesses.of(guesses.ids)] == [
        label for label, given in zip(predictions.labels, predictions.given, strict=True) if not given
    ]
    np.testing.assert_allclose(guesses.confidences, predictions.confidences[~predictions.given], atol=1e-6)
    assert (guesses.by, guesses.is_current, len(collection.labels())) == ("lesson", True, 6)
    items = collection.get(collection.ids)
    assert all((item.label is None) != (item.guess is None) for item in items)


def test_all_of_a_class_are_found_given_and_guessed(lesson, collection, points):
    given, guessed = collection.find(labels=["ant"]), collection.find(guesses=["ant"])
    assert (len(given), len(given) + len(guessed)) == (2, lesson.predictions().labels.count("ant"))
    assert collection.find(labels=["ant"], guesses=["ant"]).tolist() == sorted([*given, *guessed])
    assert collection.find(guesses=["ant"], among=guessed[:3]).tolist() == guessed[:3].tolist()
    (hits,) = collection.search(points[0][:1], k=200, guesses=["ant", "bee"])
    assert {hit.guess.label for hit in hits} == {"ant", "bee"}
    assert {hit.label for hit in hits} == {None}


def test_items_are_listed_by_how_sure_guesses_are(lesson, collection):
    sure = dict(zip(collection.guesses().ids.tolist(), collection.guesses().confidences.tolist(), strict=True))
    least = collection.find(order="least_sure").tolist()
    assert [sure.get(item, 2.0) for item in least] == sorted(sure.get(item, 2.0) for item in least)
    most = [sure[item] for item in collection.find(guesses=["bee"], order="likeliest").tolist()]
    assert most == sorted(most, reverse=True)
    with pytest.raises(ValueError, match="'likeliest'"):
        collection.find(order="surest")


def test_nobody_is_told_how_sure_guesses_are_before_labels_can_tell(lesson, collection, points, tmp_path):
    item = int(collection.guesses().ids[0])
    assert not collection.guesses().knows_confidence
    assert collection.get([item])[0].guess.confidence is None
    assert collection.search(items=[item], guesses=["ant"])[0].hits[0].guess.confidence is None
    export_labels(collection, tmp_path / "labels.csv")
    collection.export(tmp_path / "items.jsonl")
    assert ",guessed,\n" in (tmp_path / "labels.csv").read_text()
    assert '"guess_confidence": null' in (tmp_path / "items.jsonl").read_text()
    for group, name in enumerate(NAMES):
        lesson.answer(100 + np.flatnonzero(points[1] == group)[2:8], name)
    with Collection(collection.folder, read_only=True) as reader:
        guesses = reader.guesses()
        assert guesses.knows_confidence
        found = reader.get(guesses.ids)
    np.testing.assert_allclose([each.guess.confidence for each in found], guesses.confidences, atol=1e-4)
    export_labels(collection, tmp_path / "labels.csv")
    assert ",guessed,\n" not in (tmp_path / "labels.csv").read_text()


def test_guesses_survive_a_restart_and_follow_only_from_what_is_there(lesson, collection, points):
    before = collection.guesses()
    lesson.close()
    collection.close()
    with Collection(collection.folder) as again:
        found = again.guesses()
        assert found.is_current
        assert found.counts() == before.counts()
        again.set_labels([int(found.ids[0])], ["bee"])
        stale = again.guesses()
        assert not stale.is_current
        assert found.ids[0] not in stale.ids, "an item with a label has no guess"
        again.remove([int(found.ids[1])])
        assert len(again.guesses()) == len(found) - 2
        assert guess_labels(again).is_current
    with Collection(collection.folder, read_only=True) as reader:
        assert reader.guesses().is_current


def test_metadata_and_new_codes_leave_guesses_current(lesson, collection):
    collection.update([100], [{"shop": "a"}])
    assert collection.guesses().is_current
    collection.replace_hasher(collection.hasher)
    assert collection.guesses().is_current


def test_guesses_have_the_names_of_today(lesson, collection):
    n_ants, n_bees = (collection.guesses().counts()[name] for name in ("ant", "bee"))
    collection.rename_class("ant", "emmet")
    collection.merge_classes("bee", "emmet")
    assert collection.guesses().counts()["emmet"] == n_ants + n_bees
    collection.undo_class_change()
    collection.undo_class_change()
    assert collection.guesses().counts()["ant"] == n_ants
    collection.remove_class("ant")
    assert "ant" not in collection.guesses().counts()


@pytest.mark.parametrize("damage", ["cut", "other", "link"])
def test_a_damaged_file_of_guesses_is_as_none(lesson, collection, tmp_path, damage):
    lesson.close()
    collection.close()
    file = collection.folder / ".guesses.star"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "other":
        file.write_bytes(b"no file of guesses")
    else:
        target = tmp_path / "elsewhere"
        target.write_bytes(b"mine")
        file.unlink()
        file.symlink_to(target)
    with Collection(collection.folder) as again:
        assert again.guesses() is None
        with Lesson(again):
            assert again.guesses().is_current
    if damage == "link":
        assert target.read_bytes() == b"mine"


def test_a_page_of_guesses_is_accepted_in_one_change_and_undone_in_one(lesson, collection):
    guesses = collection.guesses()
    page, version = guesses.ids[:10], collection.version
    seen = [guess.label for guess in guesses.of(page)]
    reviewed = accept_guesses(collection, page)
    assert (reviewed.ids, reviewed.left) == (page.tolist(), [])
    assert collection.version == version + 1
    assert [item.label for item in collection.get(page)] == seen
    assert lesson.state().n_given == 16, "the lesson notices"
    lesson.undo()
    assert [item.label for item in collection.get(page)] == [None] * 10
    assert collection.guesses().is_current


def test_what_was_seen_is_accepted_and_a_label_is_never_overwritten(lesson, collection):
    one, other = collection.guesses().ids[:2].tolist()
    collection.set_labels([one], ["cow"])
    reviewed = accept_guesses(collection, [one, other], ["bee", "bee"])
    assert (reviewed.ids, reviewed.left) == ([other], [one])
    assert [item.label for item in collection.get([one, other])] == ["cow", "bee"]


def test_accepted_guesses_do_not_count_as_agreement(lesson, collection):
    before = lesson.curve()[-1]
    lesson.accept(collection.guesses().ids[:20])
    after = lesson.curve()[-1]
    assert (after.agreement, after.n_compared) == (before.agreement, before.n_compared)
    assert after.n_given == before.n_given + 20


def test_a_rejected_guess_is_not_made_again_until_that_is_undone(lesson, collection, points):
    item = int(collection.find(guesses=["ant"], order="likeliest")[0])
    before = collection.get([item])[0].guess
    lesson.reject([item])
    after = collection.get([item])[0].guess
    assert after is None or after.label != "ant"
    assert lesson.predictions([item]).confidences[0] < 0.5, "nobody has said that it is a bee"
    lesson.answer([100 + int(np.flatnonzero(points[1] == 0)[5])], "ant")
    assert item not in collection.find(guesses=["ant"])
    assert undo_last(collection) is not None  # the answer
    undo_last(collection)  # the rejection
    lesson.state()
    assert collection.get([item])[0].guess == before


def test_all_guesses_of_an_item_can_be_rejected(lesson, collection):
    item = int(collection.guesses().ids[0])
    for _ in NAMES:
        lesson.reject([item])
    assert collection.get([item])[0].guess is None
    assert lesson.predictions([item]).labels == [None]


def test_the_model_guesses_where_it_was_fitted_to_all_classes(tmp_path, points):
    X, groups = points
    names = np.array(NAMES)[groups]
    partly = [name if row < 90 else None for row, name in enumerate(names)]
    fitted = StarRidge(16, random_state=0).fit(X[:90], names[:90])
    with Collection.create(tmp_path / "fitted", fitted, vectors="float16") as collection:
        collection.add(X, labels=partly)
        guesses = guess_labels(collection)
        assert (guesses.by, guesses.ids.tolist()) == ("hasher", list(range(90, 120)))
        found = collection.predict(X[90:], probabilities=True)
        assert [guess.label for guess in guesses.of(guesses.ids)] == found.labels
        assert guesses.knows_confidence, "90 rows of the fit had labels"
        np.testing.assert_allclose(guesses.confidences, np.max(found.probabilities, axis=1), atol=1e-3)
        reject_guesses(collection, [90])
        assert not collection.guesses().is_current
        guess_labels(collection, by="hasher")
        assert collection.get([90])[0].guess.label != found.labels[0]
        collection.set_labels([91], ["dog"])
        assert guess_labels(collection).by == "lesson", "the model knows no dogs"


def test_exports_say_what_was_given_and_what_was_guessed(lesson, collection, tmp_path):
    collection.export(tmp_path / "items.jsonl")
    entries = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    for entry, item in zip(entries, collection.get(collection.ids), strict=True):
        assert entry["label"] == item.label
        assert entry["guess"] == (None if item.guess is None else item.guess.label)
        assert entry["guess_confidence"] == (None if item.guess is None else item.guess.confidence)
    parquet = pytest.importorskip("pyarrow.parquet")
    collection.export(tmp_path / "items.parquet")
    table = parquet.read_table(tmp_path / "items.parquet").to_pydict()
    assert table["guess"] == [entry["guess"] for entry in entries]


def test_labels_can_be_exported_without_a_lesson(lesson, collection, tmp_path):
    lesson.close()
    collection.close()
    with Collection(collection.folder, read_only=True) as reader:
        export_labels(reader, tmp_path / "labels.csv")
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert sum(",guessed," in line for line in lines) == 114
    assert sum(",given,1.0000" in line for line in lines) == 6


def test_what_cannot_be_done_is_said_with_advice(collection, points, tmp_path):
    with pytest.raises(ValueError, match="Guess them first"):
        collection.find(guesses=["ant"])
    with pytest.raises(ValueError, match="Guess them first"):
        accept_guesses(collection, [100])
    with pytest.raises(ValueError, match="need two"):
        guess_labels(collection)
    with pytest.raises(ValueError, match="by 'lesson'"):
        guess_labels(collection, by="hasher")
    assert undo_last(collection) is None
