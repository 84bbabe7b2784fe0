"""Holders of the limit of one BLAS thread, tried in a process that has no other: `python tests/blas_limits.py NAME`."""

import sys
from contextlib import ExitStack
from importlib import import_module

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from starshl._common.threads import single_threaded_blas


def blas_threads():
    np.eye(2) @ np.eye(2)
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def blas_has_one_thread_inside_and_its_old_number_after():
    with threadpool_limits(2):
        with single_threaded_blas():
            assert blas_threads() == {1}
            with single_threaded_blas():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def overlapping_holders_keep_the_limit_until_the_last_one_ends():
    first, second = ExitStack(), ExitStack()
    with threadpool_limits(2):
        first.enter_context(single_threaded_blas())
        second.enter_context(single_threaded_blas())
        first.close()
        assert blas_threads() == {1}
        second.close()
        assert blas_threads() == {2}


def a_new_holder_sets_one_thread_again_after_others_have_changed_the_number():
    with single_threaded_blas(), threadpool_limits(2):
        assert blas_threads() == {2}
        with single_threaded_blas():
            assert blas_threads() == {1}


def a_library_that_is_loaded_later_is_limited_too():
    with single_threaded_blas():
        n_libraries = len(threadpool_info())
        import_module("scipy.linalg")
        assert len(threadpool_info()) > n_libraries, "SciPy brings a BLAS of its own."
        with threadpool_limits(2), single_threaded_blas():
            assert blas_threads() == {1}
    with threadpool_limits(2):
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {2}


if __name__ == "__main__":
    globals()[sys.argv[1]]()
