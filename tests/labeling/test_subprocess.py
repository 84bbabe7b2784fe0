"""Codes that are learned in a process of their own: the same ones, and nobody waits for it."""

import os
import signal
import time

import numpy as np
import psutil
import pytest

from starshl import Collection
from starshl.data.features import Scale
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash
from starshl.labeling import Lesson

from .test_codes import finish, teach


def taught(collection, groups, *, in_subprocess):
    with Lesson(collection, in_subprocess=in_subprocess) as lesson:
        teach(lesson, groups)
        lesson.refit()
        finish(lesson)
    return collection.codes(collection.ids).packed, collection.space_id, collection.hasher.fit_record_


def test_codes_learned_in_another_process_are_those_learned_here(points, tmp_path):
    rows, groups = points
    results = []
    for in_subprocess in (False, True):
        hasher = PreparedHasher([Scale()], LSHash(9, random_state=0)).fit(rows)
        with Collection.create(tmp_path / str(in_subprocess), hasher, vectors="float16") as collection:
            collection.add(rows, ids=np.arange(len(rows)) + 100)
            results.append(taught(collection, groups, in_subprocess=in_subprocess))
            assert isinstance(collection.hasher, PreparedHasher)
    (here, space, record), (other, other_space, other_record) = results
    np.testing.assert_array_equal(here, other)
    assert space == other_space
    assert record["labeled"] == other_record["labeled"] == 6


def started(others=()):
    """Wait until a process runs besides some others; return its number."""
    end = time.monotonic() + 60
    while not (found := {child.pid for child in psutil.Process().children()} - set(others)):
        assert time.monotonic() < end
        time.sleep(0.01)
    (number,) = found
    return number


@pytest.fixture
def others():
    """Processes that other tests have started."""
    return [child.pid for child in psutil.Process().children()]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped on this system")
def test_answers_are_stored_while_codes_are_being_learned(collection, points, others):
    with Lesson(collection, in_subprocess=True) as lesson:
        teach(lesson, points[1])
        lesson.refit()
        os.kill(started(others), signal.SIGSTOP)
        lesson.answer([130], "bee")
        lesson.propose(3)
        assert lesson.codes().state == "running"
        assert collection.labels()[130] == "bee"
        lesson.cancel_refit()
        assert lesson.wait_for_codes(60)
        assert lesson.codes().state == "canceled"


def test_a_process_that_dies_is_reported_and_the_next_fit_has_a_new_one(collection, points, others):
    with Lesson(collection, in_subprocess=True) as lesson:
        teach(lesson, points[1])
        lesson.refit()
        os.kill(first := started(others), signal.SIGKILL)
        assert lesson.wait_for_codes(60)
        assert lesson.codes().state == "failed"
        assert "has ended" in lesson.codes().error
        lesson.refit()
        assert started(others) != first
        finish(lesson)


def test_a_lesson_that_is_closed_leaves_no_process_behind(collection, points, others):
    with Lesson(collection, in_subprocess=True) as lesson:
        teach(lesson, points[1])
        lesson.refit()
        number = started(others)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
