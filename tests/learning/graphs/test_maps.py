import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from starshl import NeighborGraph
from starshl.learning import map_items
from starshl.learning.graphs.neighbor_graph import principal_coordinates


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data
    return X, NeighborGraph.of_rows(X), principal_coordinates(X, 2)


def test_neighbors_of_digits_stay_neighbors_on_the_map(digits):
    X, graph, start = digits
    places = map_items(graph, start)
    assert places.shape == (len(X), 2)
    assert places.min() >= 0
    assert places.max() <= 1
    # .83 for principal components, and .988 measured; the package promises .9.
    assert trustworthiness(X, places, n_neighbors=10) > 0.97


def test_maps_do_not_depend_on_the_number_of_threads():
    rows = np.random.default_rng(0).standard_normal((5000, 3))  # more than one thread moves at a time
    graph = NeighborGraph.of_rows(rows)
    one, two = (map_items(graph, rows[:, :2], n_steps=10, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_another_seed_draws_another_map(digits):
    _, graph, start = digits
    one = map_items(graph, start, n_steps=10)
    assert not np.array_equal(one, map_items(graph, start, n_steps=10, seed=1))


def test_groups_without_a_connection_and_identical_rows_have_places():
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0)
    places = map_items(NeighborGraph.of_rows(X), X, n_steps=50)
    assert np.isfinite(places).all()
    assert np.linalg.norm(places[:20].mean(axis=0) - places[20:].mean(axis=0)) > 0.2


def test_a_start_of_another_shape_is_refused(digits):
    with pytest.raises(ValueError, match=r"must be \(1797, 2\)"):
        map_items(digits[1], np.zeros((3, 2)))
