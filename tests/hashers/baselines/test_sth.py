"""Self-taught hashing: the graph, the eigenmap, the cuts and the SVMs."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from starshl.exceptions import InputError
from starshl.hashers.baselines import SelfTaughtHash
from starshl.hashers.baselines.sth import cut_near_median, laplacian_eigenmap, neighbor_graph


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0] / 16.0


def test_graph_holds_an_edge_where_either_row_is_near_the_other():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    expected = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    assert np.array_equal(neighbor_graph(X, 1, "binary").toarray(), expected)
    squared = np.array([1.0, 1.0, 4.0, 16.0])
    heat = neighbor_graph(X, 1, "heat").toarray()
    assert np.allclose(heat[[0, 1, 2], [1, 2, 3]], np.exp(-squared[1:] / squared.mean()))


def test_cosine_weights_are_the_cosines():
    X = np.random.default_rng(3).standard_normal((30, 4))
    graph = neighbor_graph(X, 3, "cosine").tocoo()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    edges = graph.row != graph.col
    cosines = (unit @ unit.T)[graph.row[edges], graph.col[edges]]
    assert np.allclose(graph.data[edges], cosines)


@pytest.mark.parametrize("n_rows", [120, 900])
def test_eigenmap_solves_the_generalized_problem_as_a_dense_solver_does(n_rows):
    X = np.random.default_rng(1).standard_normal((n_rows, 3))
    graph = neighbor_graph(X, 10, "heat")
    values, vectors = laplacian_eigenmap(graph, 4, np.random.RandomState(0))
    W = graph.toarray()
    D = np.diag(W.sum(axis=1))
    expected = scipy.linalg.eigh(D - W, D, eigvals_only=True, subset_by_index=[1, 4])
    assert np.allclose(values, expected, atol=1e-10)
    assert np.allclose((D - W) @ vectors, D @ vectors * values, atol=1e-8)


def test_eigenmap_of_a_disconnected_graph_separates_its_components_first():
    triangle = np.ones((3, 3)) - np.eye(3)
    graph = sp.csr_array(scipy.linalg.block_diag(triangle, triangle, triangle))
    values, vectors = laplacian_eigenmap(graph, 4, np.random.RandomState(0))
    assert np.allclose(values[:2], 0)
    assert (values[2:] > 0.5).all()
    by_component = vectors[:, :2].reshape(3, 3, 2)
    assert np.allclose(by_component, by_component[:, :1])
    assert np.linalg.matrix_rank(by_component[:, 0] - by_component[0, 0]) == 2


def test_cut_moves_off_a_run_of_equal_values():
    assert cut_near_median(np.array([3.0, 1.0, 2.0, 4.0])).tolist() == [1, -1, -1, 1]
    assert cut_near_median(np.array([0.0, 0.0, 0.0, 1.0, -1.0, -2.0])).tolist() == [1, 1, 1, 1, -1, -1]
    assert cut_near_median(np.zeros(3)).tolist() == [1, 1, 1]


def test_one_bit_tells_two_moons_apart():
    X, moon = make_moons(300, noise=0.03, random_state=0)
    bit = SelfTaughtHash(1, n_neighbors=8, random_state=0).fit(X).spectral_codes_[:, 0] > 0
    assert np.array_equal(bit, moon == 1) or np.array_equal(bit, moon == 0)


@pytest.mark.parametrize("weights", ["binary", "cosine", "heat"])
def test_spectral_bits_are_balanced(weights, digits):
    hasher = SelfTaughtHash(8, weights=weights, random_state=0).fit(digits[:600])
    share = (hasher.spectral_codes_ > 0).mean(axis=0)
    assert ((share > 0.4) & (share < 0.6)).all()
    assert np.all(np.diff(hasher.eigenvalues_) >= -1e-12)


def test_each_bit_is_the_linear_svm_of_its_spectral_bit(digits):
    X = digits[:300]
    hasher = SelfTaughtHash(3, random_state=0).fit(X)
    scale = np.sqrt((X**2).sum(axis=1).mean())
    svm = LinearSVC(C=1.0, dual=False, tol=1e-3).fit(X / scale, hasher.spectral_codes_[:, 1])
    assert np.allclose(hasher.decision_function(X)[:, 1], svm.decision_function(X / scale))
    accuracy = (hasher.transform(X) == hasher.spectral_codes_).mean(axis=0)
    assert np.array_equal(hasher.bit_accuracy_, accuracy)


def test_codes_do_not_depend_on_the_unit_of_the_features(digits):
    hasher = SelfTaughtHash(6, random_state=0)
    codes = hasher.fit(digits[:300]).transform(digits)
    assert np.array_equal(hasher.fit(1024 * digits[:300]).transform(1024 * digits), codes)


def test_blas_threads_do_not_change_the_model(digits):
    with threadpool_limits(1):
        one = SelfTaughtHash(6, random_state=0).fit(digits)
    with threadpool_limits(2):
        two = SelfTaughtHash(6, random_state=0).fit(digits)
    assert one.components_.tobytes() == two.components_.tobytes()


def test_labels_are_not_read(digits):
    poison = np.full(len(digits), np.nan)
    plain, poisoned = (SelfTaughtHash(4, random_state=0).fit(digits, y) for y in (None, poison))
    assert np.array_equal(plain.components_, poisoned.components_)


def test_far_blobs_share_a_code():
    X, blob = make_blobs(150, centers=3, cluster_std=0.3, random_state=2)
    codes = SelfTaughtHash(2, n_neighbors=10, random_state=0).fit(X).spectral_codes_
    for b in range(3):
        assert len(np.unique(codes[blob == b], axis=0)) == 1
    assert len(np.unique(codes, axis=0)) == 3


def test_zero_rows_and_equal_rows_are_hashed():
    X = np.vstack([np.zeros((5, 3)), np.ones((5, 3)), np.eye(3)])
    for weights in ("binary", "cosine", "heat"):
        codes = SelfTaughtHash(3, n_neighbors=2, weights=weights, random_state=0).fit_transform(X)
        assert np.isin(codes, (-1, 1)).all()


def test_too_many_bits_name_the_largest_number():
    with pytest.raises(InputError) as refused:
        SelfTaughtHash(10).fit(np.eye(10))
    assert (refused.value.parameter, refused.value.value) == ("n_bits", 10)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"n_neighbors": 0}, "n_neighbors is 0"), ({"weights": "x"}, "weights is 'x'"), ({"C": 0}, "C is 0")],
)
def test_bad_settings_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        SelfTaughtHash(2, **params).fit(np.eye(10))
