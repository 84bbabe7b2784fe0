"""Tables of distances, stored or computed when asked for."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances

from starshl._common.result_cache import ResultCache, caching_results
from starshl.learning.kernels.distances import DistanceTiles


@pytest.mark.parametrize("n_columns", [1, 7, 64, 300])
@pytest.mark.parametrize("n_rows", [36, 384, 900])
def test_a_distance_is_the_same_number_whatever_else_is_asked_for(n_rows, n_columns):
    rng = np.random.default_rng(n_rows + n_columns)
    rows = rng.standard_normal((n_rows, n_columns))
    stored, computed = DistanceTiles(rows), DistanceTiles(rows, stored=False)
    for size in (1, 30, n_rows // 2):
        some = np.sort(rng.choice(n_rows, size, replace=False))
        others = np.sort(rng.choice(n_rows, size, replace=False))
        assert computed.between(some, others).tobytes() == stored.between(some, others).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_those_of_scikit_learn(dtype):
    rows = np.random.default_rng(0).standard_normal((500, 20)).astype(dtype)
    some, others = np.arange(0, 500, 3), np.arange(100, 400)
    found = DistanceTiles(rows, stored=False).between(some, others)
    expected = euclidean_distances(rows[some].astype(np.float64), rows[others].astype(np.float64), squared=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-12)


def test_tables_of_the_same_rows_are_computed_once_where_work_is_shared():
    rows = np.random.RandomState(0).rand(500, 7).astype(np.float32)
    alone = DistanceTiles(rows).stored
    with caching_results(ResultCache(min_seconds=0.0)):
        first, again, other = DistanceTiles(rows), DistanceTiles(rows.copy()), DistanceTiles(rows + 1)
    assert again.stored is first.stored
    assert other.stored is not first.stored
    assert first.tile(0, 1).tobytes() == np.ascontiguousarray(alone[1][:384, :116]).tobytes()
