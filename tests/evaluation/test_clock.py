"""The estimate of the time left."""

import pytest

from starshl.evaluation.clock import Clock


def test_methods_not_yet_measured_go_at_the_mean_pace():
    clock = Clock({"a": ("slow", 10.0), "b": ("quick", 1.0), "c": ("quick", 1.0)})
    clock.note("a", 30.0)
    assert clock.seconds_left() == pytest.approx(6.0)


def test_a_measured_method_keeps_its_own_pace():
    clock = Clock({"a": ("slow", 10.0), "b": ("quick", 1.0), "c": ("quick", 2.0)})
    clock.note("a", 30.0)
    clock.note("b", 1.0)
    assert clock.seconds_left() == pytest.approx(2.0)


def test_workers_share_the_tasks_and_no_task_is_cut():
    clock = Clock(dict.fromkeys("abcd", ("lsh", 1.0)), n_workers=2)
    assert clock.seconds_left() == 0.0
    clock.note("a", 1.0)
    clock.note("b", 1.0)
    assert clock.seconds_left() == pytest.approx(1.0)
    clock.note("c", 1.0)
    assert clock.seconds_left() == pytest.approx(1.0)
