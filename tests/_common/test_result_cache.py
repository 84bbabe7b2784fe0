"""Results that several fits have in common are computed once within a block."""

from __future__ import annotations

import time

import numpy as np
import pytest

from starshl._common.result_cache import ResultCache, cached, caching_results, can_cache, seconds_saved


class Counted:
    """Counts its calls."""

    def __init__(self, result, seconds=0.0):
        self.result, self.seconds, self.n_calls = result, seconds, 0

    def __call__(self):
        self.n_calls += 1
        time.sleep(self.seconds)
        return self.result


def all_kept(**limits):
    return caching_results(ResultCache(min_seconds=0.0, **limits))


def test_equal_arguments_are_computed_once():
    compute = Counted(np.arange(3.0))
    with all_kept():
        first = cached("mean", (np.ones((4, 3)), "rms"), compute)
        again = cached("mean", (np.ones((4, 3)), "rms"), compute)
    assert compute.n_calls == 1
    assert again is first


@pytest.mark.parametrize(
    "other",
    [
        (np.ones((3, 4)), "rms"),
        (np.ones((4, 3), dtype=np.float32), "rms"),
        (np.ones((4, 3)), "half_rms"),
        (np.full((4, 3), np.nextafter(1.0, 2.0)), "rms"),
    ],
    ids=["shape", "precision", "setting", "last digit"],
)
def test_other_arguments_are_another_result(other):
    compute = Counted(0)
    with all_kept():
        cached("mean", (np.ones((4, 3)), "rms"), compute)
        cached("mean", other, compute)
    assert compute.n_calls == 2


def test_nothing_is_shared_outside_of_a_block():
    compute = Counted(0)
    with all_kept():
        cached("mean", 1, compute)
    cached("mean", 1, compute)
    assert compute.n_calls == 2
    assert not can_cache(0)


def test_arguments_that_cannot_be_pickled_are_computed_every_time():
    compute = Counted(0)
    with all_kept():
        for _ in range(2):
            cached("mean", lambda: None, compute)
    assert compute.n_calls == 2


def test_a_shared_array_cannot_be_changed():
    with all_kept():
        result = cached("zeros", 1, Counted(np.zeros(2)))
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 1.0


def test_the_result_not_asked_for_longest_makes_room():
    first, second = Counted(np.zeros(60, dtype=np.uint8)), Counted(np.zeros(60, dtype=np.uint8))
    with all_kept(max_bytes=100):
        for compute, name in ((first, "a"), (second, "b"), (first, "a")):
            cached(name, 0, compute)
        assert can_cache(100)
        assert not can_cache(101)
    assert (first.n_calls, second.n_calls) == (2, 1)


def test_seconds_saved_are_those_of_the_computation():
    with all_kept():
        for _ in range(3):
            cached("zero", 0, Counted(0, seconds=0.025))
        assert 2 * 0.025 <= seconds_saved() < 10


def test_what_is_quicker_to_compute_is_not_kept():
    compute = Counted(0)
    with caching_results(ResultCache(min_seconds=60.0)):
        for _ in range(2):
            cached("zero", 0, compute)
    assert compute.n_calls == 2
