"""The estimate of the time left."""

import pytest

from starshl.reproduction.executor import Clock


def test_methods_not_yet_measured_go_at_the_mean_pace():
    clock = Clock({"a": (("slow",), 10.0), "b": (("quick",), 1.0), "c": (("quick",), 1.0)})
    clock.note("a", 30.0)
    assert clock.seconds_left() == pytest.approx(6.0)


def test_a_measured_method_keeps_its_own_pace():
    clock = Clock({"a": (("slow",), 10.0), "b": (("quick",), 1.0), "c": (("quick",), 2.0)})
    clock.note("a", 30.0)
    clock.note("b", 1.0)
    assert clock.seconds_left() == pytest.approx(2.0)


def test_a_kind_not_yet_measured_goes_at_the_pace_of_its_nearest_relatives():
    clock = Clock(
        {
            "a": (("usps", "ridge", "first"), 4.0),
            "b": (("usps", "ridge", "later"), 1.0),
            "c": (("usps", "lsh", "first"), 10.0),
            "d": (("mnist", "lsh", "first"), 10.0),
            "e": (("usps", "svm", "first"), 2.0),
        }
    )
    clock.note("c", 10.0)
    clock.note("a", 40.0)
    assert clock.seconds_left() == pytest.approx(1 * 40 / 4 + 10 * 50 / 14 + 2 * 50 / 14)


def test_workers_share_the_tasks_and_no_task_is_cut():
    clock = Clock(dict.fromkeys("abcd", (("lsh",), 1.0)), n_workers=2)
    assert clock.seconds_left() == 0.0
    clock.note("a", 1.0)
    clock.note("b", 1.0)
    assert clock.seconds_left() == pytest.approx(1.0)
    clock.note("c", 1.0)
    assert clock.seconds_left() == pytest.approx(1.0)
