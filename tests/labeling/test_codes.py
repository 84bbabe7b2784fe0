import threading

import numpy as np
import pytest

from starshl import Collection, HybridHasher, model_card
from starshl.data.features import Scale, TableFeatures
from starshl.exceptions import SpaceMismatchError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash
from starshl.labeling import Lesson
from starshl.labeling.background import BackgroundRefit
from starshl.labeling.codes import CodesTask, learn_codes
from starshl.learning.graphs.label_spreading import Spread


def teach(lesson, groups, names=("ant", "bee", "cow")):
    for group, name in enumerate(names):
        lesson.answer(100 + np.flatnonzero(groups == group)[:2], name)


def finish(lesson):
    assert lesson.wait_for_codes(60)
    assert lesson.codes().error is None
    return lesson.codes()


def test_codes_follow_the_labels(collection, points):
    with Lesson(collection) as lesson:
        teach(lesson, points[1])
        version = lesson.version
        lesson.refit()
        assert finish(lesson)[:3] == ("current", "", version)
        before = lesson.predictions()
        hits = collection.search(items=[100], k=30)[0]
    assert isinstance(collection.hasher, HybridHasher)
    assert collection.n_bits == 9  # four of the class and as many as the points have columns
    assert {points[1][hit.id - 100] for hit in hits} == {points[1][0]}
    assert before.labels == collection.hasher.predict(points[0]).tolist()
    assert collection.verify() == 120


@pytest.mark.parametrize(("n_given", "accuracy"), [(12, None), (40, 0.75)])
def test_a_model_of_a_lesson_claims_the_accuracy_of_given_labels_that_were_left_out(points, n_given, accuracy):
    X, groups = points
    is_given = np.arange(len(groups)) < n_given
    probabilities = np.where(np.arange(3) == groups[:, None], 0.9, 0.05)
    probabilities[is_given] = np.eye(3)[groups[is_given]]
    left_out = np.where(np.arange(3) == groups[is_given, None], 0.9, 0.05)
    left_out[::4] = np.roll(left_out[::4], 1, axis=1)  # every fourth is taken for another class
    task = CodesTask(("ant", "bee", "cow"), Spread(groups, is_given, probabilities, left_out, graph_share=1.0), 16)
    hasher, _ = learn_codes(X, task, lambda stage: None)
    card, choice = model_card(hasher), hasher.class_part.fit_summary.choice
    assert card["data"]["labeled"] == n_given
    assert [each["accuracy"] for each in card["measured"]] == ([] if accuracy is None else [accuracy])
    assert ("too few labels to say" in choice) == (accuracy is None)
    assert ("accuracy 0.750 on 40 given labels" in choice) == (accuracy is not None)


def test_codes_stand_for_the_probabilities_of_the_lesson(collection, points):
    with Lesson(collection) as lesson:
        teach(lesson, points[1])
        lesson.refit()
        finish(lesson)
        found = lesson.predictions()
    hasher = collection.hasher
    stand_for = hasher.words.posteriors_of(collection.codes(found.ids))
    assert hasher.classes_[stand_for.argmax(axis=1)].tolist() == found.labels
    assert (stand_for.max(axis=1)[found.given] == 1).all()
    # The fit is sure of these groups; labels that have spread from two items of each are not.
    doubts = stand_for.max(axis=1)[~found.given]
    assert np.abs(doubts - found.confidences[~found.given]).mean() < 0.2


def test_following_codes_are_those_of_the_last_answer(collection, points):
    with Lesson(collection, auto_refit=True) as lesson:
        teach(lesson, points[1])
        lesson.answer([100], "dog")
        finish(lesson)
        assert "dog" in collection.hasher.classes_.tolist()
        assert lesson.codes().version == lesson.version - 1  # that of the labels, just before the change of the codes


def test_one_class_gives_no_codes(collection):
    with Lesson(collection, auto_refit=True) as lesson:
        lesson.answer([100], "ant")
        lesson.refit()
        assert finish(lesson).state == "idle"
        assert collection.n_bits == 16


def test_steps_before_the_hasher_are_kept(tmp_path, points, hasher):
    prepared = PreparedHasher([Scale()], hasher).fit(points[0])
    with Collection.create(tmp_path / "prepared", prepared, vectors="float16") as collection:
        collection.add(points[0], ids=np.arange(100, 220))
        with Lesson(collection) as lesson:
            teach(lesson, points[1])
            lesson.refit()
            finish(lesson)
        assert isinstance(collection.hasher, PreparedHasher)
        assert isinstance(collection.hasher.hasher_, HybridHasher)


def test_rows_of_a_table_are_taught_by_their_kept_vectors(tmp_path, points):
    table = np.column_stack([points[0].astype(object), np.array(["red", "blue", "tan"], dtype=object)[points[1]]])
    prepared = PreparedHasher([TableFeatures(), Scale()], LSHash(16, random_state=0)).fit(table)
    with Collection.create(tmp_path / "table", prepared, vectors="float16") as collection:
        collection.add(table[:118], ids=np.arange(100, 218))
        with Lesson(collection) as lesson:
            teach(lesson, points[1])
            assert np.mean(lesson.predictions().labels == np.array(["ant", "bee", "cow"])[points[1][:118]]) > 0.95
            collection.add(table[118:], ids=[218, 219])  # not part of the lesson, but encoded with its items
            lesson.refit()
            finish(lesson)
        assert isinstance(collection.hasher.hasher_, HybridHasher)
        assert [hit.id for hit in collection.search(table[118:], k=1)[0]] == [218]


def test_a_background_refit_runs_once_for_many_requests_and_gives_up_when_canceled():
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def work(run):
        runs.append(len(runs))
        begun.set()
        assert go_on.wait(60)
        run.report("next")
        return 7

    background = BackgroundRefit(work)
    background.request()
    assert begun.wait(60)
    for _ in range(5):
        background.request()
    go_on.set()
    assert background.wait(60)
    assert (len(runs), background.state.state, background.state.version) == (2, "current", 7)
    begun.clear()
    go_on.clear()
    background.request()
    assert begun.wait(60)
    background.cancel()
    go_on.set()
    assert background.wait(60)
    assert background.state.state == "canceled"
    background.close()


def test_what_went_wrong_is_told():
    def work(run):
        raise ValueError("no room")

    background = BackgroundRefit(work)
    background.request()
    assert background.wait(60)
    assert background.state[:1] + background.state[3:] == ("failed", "no room")
    background.close()


def test_codes_that_cannot_be_those_of_the_new_hasher_are_refused(collection, hasher, points):
    codes = hasher.encode(points[0])
    with pytest.raises(ValueError, match="120 ids and 9 codes"):
        collection.replace_hasher(hasher, collection.ids, codes=codes[:9])
    with pytest.raises(ValueError, match="both X and codes"):
        collection.replace_hasher(hasher, collection.ids, points[0], codes=codes)
    with pytest.raises(ValueError, match="the new hasher makes 16"):
        collection.replace_hasher(
            hasher, collection.ids, codes=LSHash(8, random_state=0).fit(points[0]).encode(points[0])
        )
    other = LSHash(16, random_state=1).fit(points[0])
    with pytest.raises(SpaceMismatchError, match=f"of space {hasher.space_id_}"):
        collection.replace_hasher(other, collection.ids, codes=codes)


def test_a_class_that_comes_up_during_a_fit_gives_no_warning_and_is_in_the_next_codes(
    collection, points, recwarn, monkeypatch
):
    with Lesson(collection) as lesson:
        teach(lesson, points[1])
        n_fits = []

        def learn_slowly(rows, task, report):
            learned = learn_codes(rows, task, report)
            if not n_fits:
                lesson.answer([100], "dog")
            n_fits.append(task.classes)
            return learned

        monkeypatch.setattr("starshl.labeling.lesson.learn_codes", learn_slowly)
        lesson.refit()
        assert finish(lesson).version == lesson.version - 1  # the change after it is that of the codes
    assert n_fits == [("ant", "bee", "cow"), ("ant", "bee", "cow", "dog")]
    assert "dog" in collection.hasher.classes_.tolist()
    assert not [each for each in recwarn if "does not know the label" in str(each.message)]
