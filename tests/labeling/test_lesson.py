import threading

import numpy as np
import pytest

from starshl import Collection
from starshl.labeling import Lesson

NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture
def lesson(collection):
    with Lesson(collection) as opened:
        yield opened


def teach(lesson, groups, n_answers):
    """Give proposed items their true labels."""
    for _ in range(n_answers):
        item = lesson.propose(1)[0].id
        lesson.answer([item], str(NAMES[groups[item - 100]]))


def share_right(lesson, groups):
    return float(
        np.mean([label == NAMES[group] for label, group in zip(lesson.predictions().labels, groups, strict=True)])
    )


def everything(lesson):
    predictions = lesson.predictions()
    return (
        predictions.labels,
        predictions.confidences.tolist(),
        predictions.given.tolist(),
        lesson.state()._replace(version=0),
        lesson.suspects(),
        lesson.curve(),
        lesson.propose(5),
    )


def test_three_proposed_labels_suffice_for_three_groups(lesson, points):
    teach(lesson, points[1], 3)
    assert sorted(lesson.classes) == ["ant", "bee", "cow"]
    assert share_right(lesson, points[1]) == 1.0


def test_a_lesson_says_how_far_it_is(lesson):
    lesson.answer([100, 101], "ant")
    assert repr(lesson) == "Lesson('points', 120 items, 2 labels)"


def test_undo_restores_the_exact_former_state(lesson, points):
    teach(lesson, points[1], 4)
    before = everything(lesson)
    lesson.answer([100, 101], "dog")
    lesson.skip([102])
    lesson.undo()
    lesson.undo()
    assert everything(lesson) == before


def test_undo_goes_back_to_the_beginning_and_then_says_that_there_is_nothing_left(lesson, points):
    before = everything(lesson)
    teach(lesson, points[1], 3)
    for _ in range(3):
        assert lesson.undo() is not None
    assert everything(lesson) == before
    assert lesson.undo() is None
    assert lesson.collection.get([100])[0].label is None


def test_undo_of_a_corrected_label_brings_the_first_one_back(lesson):
    lesson.answer([100], "ant")
    lesson.answer([100], "bee")
    lesson.undo()
    assert lesson.collection.get([100])[0].label == "ant"


def test_the_same_answers_lead_to_the_same_proposals(collection, points):
    proposals = []
    for _ in range(2):
        with Lesson(collection) as lesson:
            teach(lesson, points[1], 5)
            proposals.append(lesson.propose(9))
            for _ in range(5):
                lesson.undo()
    assert proposals[0] == proposals[1]


def test_a_new_object_goes_on_where_the_last_one_was(tmp_path, collection, points):
    with Lesson(collection) as lesson:
        teach(lesson, points[1], 6)
        lesson.skip([150])
        before = everything(lesson)
    folder = collection.folder
    collection.close()
    with Collection(folder) as again, Lesson(again) as lesson:
        assert everything(lesson) == before
        lesson.undo()
        assert lesson.state().n_skipped == 0


def test_answers_in_two_threads_are_both_kept(lesson):
    lesson.answer([100], "ant")
    lesson.answer([101], "bee")

    def answer(first):
        for item in range(first, first + 10):
            lesson.answer([item], "ant")

    threads = [threading.Thread(target=answer, args=[first]) for first in (110, 130)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lesson.state().n_given == 22
    assert len(lesson.curve()) == 22
    assert [item.label for item in lesson.collection.get(np.r_[110:120, 130:140])] == ["ant"] * 20


def test_labels_from_elsewhere_are_noticed(lesson):
    version = lesson.version
    lesson.collection.set_labels([100, 101], ["ant", "bee"])
    assert lesson.version > version
    assert lesson.state().n_given == 2
    assert lesson.classes == ["ant", "bee"]


def test_labels_can_be_numbers(lesson):
    lesson.answer(np.array([100]), np.int64(7))
    lesson.answer([101, 102], 3)
    assert lesson.classes == [7, 3]
    assert lesson.collection.get([102])[0].label == 3


def test_one_class_is_predicted_for_all_without_certainty(lesson):
    lesson.answer([100], "ant")
    predictions = lesson.predictions()
    assert set(predictions.labels) == {"ant"}
    assert predictions.confidences[0] == 1.0
    assert predictions.confidences[1:].max() < 1.0
    assert len(lesson.propose(9)) == 9


def test_taking_a_label_away_takes_its_class_away(lesson):
    lesson.answer([100], "ant")
    lesson.answer([101], "bee")
    lesson.answer([101], None)
    assert lesson.classes == ["ant"]
    assert lesson.collection.get([101])[0].label is None


def test_skipped_and_answered_items_are_not_proposed(lesson, points):
    first = [proposal.id for proposal in lesson.propose(4)]
    lesson.skip(first[:2])
    lesson.answer(first[2:3], "ant")
    lesson.answer([item for item in range(100, 110) if item not in first], "bee")
    proposed = {proposal.id for proposal in lesson.propose(200)}
    assert not proposed & {*first[:3], *range(100, 110)} - {first[3]}
    assert len(proposed) == 120 - lesson.state().n_given - 2


def test_a_wrong_label_is_suspected_first(lesson, points):
    groups = points[1]
    for group in range(3):
        lesson.answer(100 + np.flatnonzero(groups == group)[:6], str(NAMES[group]))
    wrong = 100 + int(np.flatnonzero(groups == 0)[10])
    lesson.answer([wrong], "cow")
    assert (lesson.suspects()[0].id, lesson.suspects()[0].predicted) == (wrong, "ant")


@pytest.mark.parametrize(
    ("ids", "label", "error", "match"),
    [
        ([99], "ant", KeyError, "99"),
        ([], "ant", ValueError, "no ids"),
        ([100], "", ValueError, "not empty"),
        ([100], -1, ValueError, "other than -1"),
        ([100], 2.5, ValueError, "whole number"),
        ([100], 7, ValueError, "same type"),
    ],
)
def test_bad_answers_are_refused_and_change_nothing(lesson, ids, label, error, match):
    lesson.answer([110], "ant")
    before = everything(lesson)
    with pytest.raises(error, match=match):
        lesson.answer(ids, label)
    assert everything(lesson) == before


def test_an_answer_for_an_item_that_was_removed_meanwhile_is_refused_and_changes_nothing(lesson, collection):
    lesson.answer([110], "ant")
    collection.remove([111])
    before = everything(lesson)
    for ids in ([111], [112, 111]):
        with pytest.raises(KeyError, match="111"):
            lesson.answer(ids, "ant")
    assert everything(lesson) == before
    assert collection.labels() == {110: "ant"}


def test_a_collection_without_vectors_is_refused(tmp_path, hasher, points):
    with Collection.create(tmp_path / "bare", hasher) as bare:
        bare.add(points[0])
        with pytest.raises(ValueError, match="keeps no vectors"):
            Lesson(bare)


def test_a_lesson_needs_two_items_and_works_with_two(tmp_path, hasher, points):
    with Collection.create(tmp_path / "few", hasher, vectors="float16") as few:
        few.add(points[0][:1])
        with pytest.raises(ValueError, match="two or more"):
            Lesson(few)
        few.add(points[0][1:2])
        with Lesson(few) as lesson:
            assert len(lesson.propose(9)) == 2
            lesson.answer([0], "ant")
            lesson.answer([1], "bee")
            assert lesson.propose(9) == []
            assert lesson.predictions().labels == ["ant", "bee"]
