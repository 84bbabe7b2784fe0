import subprocess
import sys
from pathlib import Path
from threading import Barrier, get_ident
from time import sleep

import pytest

from starshl._common.threads import run_all, tiles, using_threads


@pytest.mark.parametrize(
    "law",
    [
        "blas_has_one_thread_inside_and_its_old_number_after",
        "overlapping_holders_keep_the_limit_until_the_last_one_ends",
        "a_new_holder_sets_one_thread_again_after_others_have_changed_the_number",
        "a_library_that_is_loaded_later_is_limited_too",
    ],
)
def test_limits_of_blas(law):
    """In a process of its own: services that other tests have started may hold the limit in this one."""
    subprocess.run([sys.executable, Path(__file__).with_name("blas_limits.py"), law], check=True, timeout=60)


def test_results_come_in_the_order_of_the_tasks():
    tasks = [lambda i=i: i**2 for i in range(20)]
    assert run_all(tasks, n_jobs=4) == run_all(tasks, n_jobs=1) == [i**2 for i in range(20)]


def test_the_caller_works_beside_one_thread_less_than_asked_for():
    meeting = Barrier(3, timeout=10)

    def meet():
        meeting.wait()  # passes only if three tasks run at the same time
        return get_ident()

    assert get_ident() in run_all([meet] * 3, n_jobs=3)


def test_an_error_is_raised_when_running_tasks_are_done_and_the_others_are_left_out():
    finished = []

    def fail():
        raise ValueError("no")

    def finish():
        sleep(0.001)
        finished.append(True)

    with pytest.raises(ValueError, match="no"):
        run_all([fail, *[finish] * 500], n_jobs=2)
    n_finished = len(finished)
    assert n_finished < 500
    sleep(0.01)
    assert len(finished) == n_finished


def test_tiles_cover_the_rows_once():
    assert [(tile.start, tile.stop) for tile in tiles(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert tiles(0, 4) == []


def test_a_task_that_runs_tasks_stays_on_its_thread():
    def nested():
        return len(set(run_all([get_ident] * 50)))

    with using_threads(3):
        assert run_all([nested] * 6) == [1] * 6


def test_threads_asked_for_by_a_context_are_used_and_given_back():
    meeting = Barrier(2, timeout=10)
    with using_threads(2):
        run_all([meeting.wait] * 2)
        with using_threads(None):
            run_all([meeting.wait] * 2)
    assert set(run_all([get_ident] * 4)) == {get_ident()}
