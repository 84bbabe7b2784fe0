"""Checks of fit: the same bytes every time, for any threads and layout, and completely or not at all."""

from __future__ import annotations

import pickle
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from ..base import BaseHasher
from ..bundle import read_bundle
from ._expectations import Case, Interruption, expect, expect_error, expect_same, interrupted_after

_CALLS_BEFORE_INTERRUPTION = (1, 10, 40, 160, 640, 2560)  # early and late in a fit, whatever its length


def check_same_seed_gives_the_same_scores(case: Case) -> None:
    first, second = case.fitted(), case.fitted()
    expect_same(first.decision_function(case.X), second.decision_function(case.X), "scores of two fits")
    expect(first.space_id_ == second.space_id_, "two fits make codes of two spaces.")


def check_bytes_do_not_depend_on_threads(case: Case) -> None:
    # More rows than a tile holds; sums of whole numbers, such as pixels, would be exact in any order.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1500)
    rows = rng.standard_normal((3, 100))[y] + rng.standard_normal((1500, 100))
    for X in (rows, rows.astype(np.float32)):
        with parallel_config("sequential"), threadpool_limits(1):
            alone = _model_and_scores(case.make().fit(X, y), X)
        with parallel_config("threading", n_jobs=4), threadpool_limits(4):
            shared = _model_and_scores(case.make().fit(X, y), X)
        expect(shared == alone, f"one thread and four learn different models from {X.dtype} rows.")
        several = case.make(n_jobs=3).fit(X, y).decision_function(X)
        expect(several.tobytes() == alone[2], f"n_jobs=3 gives other scores for {X.dtype} rows.")


def _model_and_scores(hasher: BaseHasher, X: np.ndarray) -> tuple[dict[str, Any], dict[str, bytes], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.star"
        hasher.save(path)
        header, arrays = read_bundle(path)
    return header, {name: array.tobytes() for name, array in arrays.items()}, hasher.decision_function(X).tobytes()


def check_memory_layout_does_not_change_scores(case: Case) -> None:
    scores = case.fitted().decision_function(case.X)
    frozen = case.X.copy()
    frozen.flags.writeable = False
    for rows in (np.asfortranarray(case.X), frozen, np.repeat(case.X, 2, axis=0)[::2]):
        expect_same(case.make().fit(rows, case.y).decision_function(rows), scores, "scores in another layout")


def check_rows_are_left_as_they_came(case: Case) -> None:
    rows, labels = case.X.copy(), case.y.copy()
    case.make().fit(rows, labels).transform(rows)
    expect_same(rows, case.X, "X before and after the fit")
    expect_same(labels, case.y, "y before and after the fit")


def check_awkward_rows_get_codes(case: Case) -> None:
    X = case.X.copy()
    X[:, [0, 9]] = 3.0  # constant columns
    X[100:200] = X[:100]  # equal rows, with other labels
    X[::50] = 0.0  # rows of zeros
    hasher = case.make().fit(X, case.y)
    for rows in (X, 1e3 * X[:5]):
        expect(bool(np.isfinite(hasher.decision_function(rows)).all()), "some scores are not finite.")


def check_history_of_the_objective_is_finite(case: Case) -> None:
    history = getattr(case.fitted(), "objective_history_", np.zeros(1))
    expect(np.ndim(history) == 1 and bool(np.isfinite(history).all()), "objective_history_ is not a finite vector.")


def check_few_bits_are_given_or_refused_by_the_rule(case: Case) -> None:
    multiple = case.facts.bits_multiple_of
    for n_bits in (1, 2):
        if n_bits % multiple == 0:
            shape = case.make(n_bits=n_bits).fit(case.X, case.y).transform(case.X).shape
            expect(shape == (len(case.X), n_bits), f"n_bits={n_bits} gives codes of shape {shape}.")
        else:
            fit = partial(case.make(n_bits=n_bits).fit, case.X, case.y)
            expect_error(f"n_bits is {n_bits};.*[Uu]se {multiple}", fit)


def check_more_bits_than_possible_name_the_largest_number(case: Case) -> None:
    n_bits = 80  # the rows have 64 features
    if case.facts.max_bits != "any":
        message = expect_error(r"n_bits is 10000;.*at most \d+", lambda: case.make(n_bits=10_000).fit(case.X, case.y))
        n_bits = int(re.findall(r"at most (\d+)", message)[0])
    shape = case.make(n_bits=n_bits).fit(case.X, case.y).transform(case.X).shape
    expect(shape == (len(case.X), n_bits), f"n_bits={n_bits} gives codes of shape {shape}.")


def check_impossible_numbers_of_bits_are_refused(case: Case) -> None:
    for n_bits in (0, -8, 2.5, True, "8", None):
        fit = partial(case.make(n_bits=n_bits).fit, case.X, case.y)
        expect_error(f"n_bits is {n_bits!r}; it must be an integer", fit)


def check_interrupted_fit_leaves_the_hasher_as_it_was(case: Case) -> None:
    hasher = case.fitted()
    before = pickle.dumps(hasher)
    for n_calls in _CALLS_BEFORE_INTERRUPTION:
        try:
            with interrupted_after(n_calls):
                hasher.fit(case.X[::-1], case.y[::-1])
        except (Interruption, Exception):  # NumPy turns some interruptions into a TypeError
            expect(pickle.dumps(hasher) == before, f"a fit interrupted after {n_calls} calls changed the hasher.")
        else:
            expect(n_calls > 1, "the fit was not interrupted.")
            break


def check_refit_that_fails_leaves_the_hasher_as_it_was(case: Case) -> None:
    hasher = case.fitted()
    before = pickle.dumps(hasher)
    broken = case.X.copy()
    broken[5, 3] = np.inf
    bad_inputs = {
        "an infinite entry": lambda: hasher.fit(broken, case.y),
        "one row": lambda: hasher.fit(case.X[:1], case.y[:1]),
        "a vector": lambda: hasher.fit(case.X[0], case.y),
    }
    if case.facts.needs_labels:
        bad_inputs["too few labels"] = lambda: hasher.fit(case.X, case.y[:10])
    for what, refit in bad_inputs.items():
        try:
            expect_error("", refit, (ValueError, TypeError))
        except AssertionError:
            raise AssertionError(f"a refit on {what} should raise a ValueError or a TypeError.") from None
        expect(pickle.dumps(hasher) == before, f"a refit that failed on {what} changed the hasher.")


def check_failed_first_fit_cannot_be_saved(case: Case) -> None:
    hasher = case.make()
    try:
        with interrupted_after(20):
            hasher.fit(case.X, case.y)
    except (Interruption, Exception):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.star"
            expect_error("not fitted", lambda: hasher.save(path), (NotFittedError,))
            expect(not path.exists(), "a hasher whose fit failed left a file.")
