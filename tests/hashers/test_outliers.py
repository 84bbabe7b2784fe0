"""A single row far from all others changes next to nothing in what is learned of the others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import HybridHasher, NeighborGraph, StarRidge
from starshl.hashers.baselines import LSHash
from starshl.learning.linalg import principal_directions

N_ROWS, OUTLIER = 600, 500
SIZES = [1e5, 1e6]


def _digits(dtype: type, size: float | None) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    rows = X[:N_ROWS].astype(dtype)
    if size is not None:
        rows[OUTLIER, 5] = size
    return rows, y


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", [StarRidge, HybridHasher])
def test_a_hasher_is_as_accurate_with_an_outlier_as_without(method: type, dtype: type, size: float) -> None:
    accuracies = []
    queries = load_digits().data[N_ROWS:]
    for each in (None, size):
        rows, y = _digits(dtype, each)
        hasher = method(16, random_state=0).fit(rows, y[:N_ROWS])
        accuracies.append(np.mean(hasher.predict(queries.astype(dtype)) == y[N_ROWS:]))
    assert accuracies[0] > 0.85
    assert accuracies[1] == pytest.approx(accuracies[0], abs=0.02)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_are_the_same_with_an_outlier(dtype: type, size: float) -> None:
    plain, with_outlier = (NeighborGraph.of_rows(_digits(dtype, each)[0]).weights for each in (None, size))
    others = np.delete(np.arange(N_ROWS), OUTLIER)
    before, after = (weights[others][:, others].toarray() > 0 for weights in (plain, with_outlier))
    assert np.sum(before & after) > 0.97 * np.sum(before)


@pytest.mark.parametrize("size", [16.0, 1e5, 1e6])
def test_rows_of_single_precision_keep_their_directions_beside_an_outlier(size: float) -> None:
    rows, _ = _digits(np.float32, size)
    assert len(principal_directions(rows, 50)[0]) == 50


def test_dependent_columns_of_single_precision_give_no_direction() -> None:
    rows = np.random.RandomState(0).standard_normal((200, 4)).astype(np.float32)
    dependent = np.hstack([rows, rows.sum(axis=1, keepdims=True) / 3])
    assert len(principal_directions(dependent, 5)[0]) == 4


def test_a_far_group_of_rows_counts_in_full() -> None:
    rows = np.random.RandomState(0).standard_normal((200, 3))
    rows[:60, 0] += 1e6
    directions, variances = principal_directions(rows, 1)
    graph = NeighborGraph.of_rows(rows)
    assert abs(directions[0, 0]) > 0.99
    assert variances[0] > 1e10
    assert len(set(graph.components[:60]) & set(graph.components[60:])) == 0


@pytest.mark.parametrize("size", [1e6, 1e12])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_fit_warns_of_rows_far_from_all_others(dtype: type, size: float) -> None:
    rows, _ = _digits(dtype, min(size, float(np.finfo(dtype).max) / 2))
    with pytest.warns(UserWarning, match=f"Row {OUTLIER} of X is over"):
        LSHash(16, random_state=0).fit(rows)
    rows[OUTLIER + 1 : OUTLIER + 4] = rows[OUTLIER]
    with pytest.warns(UserWarning, match=f"Row {OUTLIER} of X and 3 others are over"):
        LSHash(16, random_state=0).fit(rows)


@pytest.mark.parametrize("size", [1e8, 1e9, 1e12])
def test_a_fit_warns_of_rows_that_differ_by_rounding(size: float) -> None:
    rows = (np.random.RandomState(0).standard_normal((200, 8)) * size * 1e-7 + size).astype(np.float32)
    with pytest.warns(UserWarning, match="the rounding of float32"):
        LSHash(16, random_state=0).fit(rows)


@pytest.mark.filterwarnings("error")
def test_no_fit_warns_of_a_group_of_rows_or_an_offset_that_leaves_digits() -> None:
    rows = np.random.RandomState(0).standard_normal((200, 8))
    LSHash(16, random_state=0).fit(rows + 1e9)
    rows[:60, 0] += 1e6
    LSHash(16, random_state=0).fit(rows)


@pytest.mark.parametrize("constant", [1e9, 1e15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_takes_no_direction_from_the_others(dtype: type, constant: float) -> None:
    rows, _ = _digits(dtype, None)
    wide = np.hstack([rows, np.full((N_ROWS, 1), constant, dtype)])
    directions, variances = principal_directions(rows, 16)
    found, found_variances = principal_directions(wide, 16)
    np.testing.assert_allclose(found[:, :-1], directions, atol=1e-6)
    np.testing.assert_allclose(found_variances, variances, rtol=1e-6)
    assert not found[:, -1].any()
