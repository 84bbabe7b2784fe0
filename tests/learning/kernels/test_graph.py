"""The graph-deformed Gaussian against its dense formula, and its weights against repetitions."""

import numpy as np
import pytest
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

from starshl.learning.kernels import Gaussian, GraphGaussian
from starshl.learning.kernels.vectors import median_distance


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 4.0])


def dense_formula(kernel, X, A, B):
    """k~(a, b) = k(a, b) - k_a' (I + g L K)^-1 g L k_b, everything dense, L from another library."""
    distances = kneighbors_graph(X, kernel.n_neighbors, mode="distance").toarray()
    width = np.median(distances.max(axis=1))
    edges = np.where(distances > 0, np.exp(-(distances**2) / (2 * width**2)), 0.0)
    L = csgraph.laplacian(np.maximum(edges, edges.T), normed=True)
    k = Gaussian(kernel.factor * median_distance(X))
    middle = np.linalg.inv(np.eye(len(X)) + kernel.strength * L @ k(X, X)) @ (kernel.strength * L)
    on_rows = k(X, X) - k(X, X) @ middle @ k(X, X)
    return (k(A, B) - k(A, X) @ middle @ k(X, B)) / np.diag(on_rows).mean()


@pytest.mark.parametrize("kernel", [GraphGaussian(), GraphGaussian(1.0, 4, 3.0), GraphGaussian(0.2, 12, 1e4)], ids=repr)
def test_values_follow_the_dense_formula_on_old_and_new_rows(kernel, rows):
    new = np.random.default_rng(1).normal(size=(15, 3)) * 3
    fitted = kernel.fit(rows)
    assert fitted(rows, rows) == pytest.approx(dense_formula(kernel, rows, rows, rows), abs=1e-8)
    assert fitted(new, rows) == pytest.approx(dense_formula(kernel, rows, new, rows), abs=1e-8)
    assert fitted(new, new[:4]) == pytest.approx(dense_formula(kernel, rows, new, new[:4]), abs=1e-8)


def test_gram_is_positive_semi_definite_with_mean_diagonal_one(rows):
    fitted = GraphGaussian().fit(rows)
    gram = fitted.gram(rows)
    assert np.abs(gram - gram.T).max() < 1e-11
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]
    assert np.diag(gram).mean() == pytest.approx(1)
    assert fitted.diagonal(rows) == pytest.approx(np.diag(gram))
    assert np.diag(gram).max() <= fitted.largest_diagonal


def test_training_rows_keep_their_values_when_they_come_back_as_new_rows(rows):
    fitted = GraphGaussian().fit(rows)
    assert fitted(rows[:10].copy(), rows) == pytest.approx(fitted.gram(rows)[:10], abs=1e-10)


def test_weights_count_as_repetitions(rows):
    weights = np.random.default_rng(2).integers(0, 4, len(rows))
    weighted = GraphGaussian().fit(rows, weights)
    repeated = GraphGaussian().fit(np.repeat(rows, weights, axis=0))
    assert weighted(rows, rows) == pytest.approx(repeated(rows, rows), abs=1e-9)


def test_order_of_rows_changes_nothing(rows):
    order = np.random.default_rng(3).permutation(len(rows))
    assert np.array_equal(GraphGaussian().fit(rows)(rows, rows), GraphGaussian().fit(rows[order])(rows, rows))


def test_without_strength_the_gaussian_is_left(rows):
    fitted = GraphGaussian(strength=0.0).fit(rows)
    assert fitted(rows, rows) == pytest.approx(Gaussian(0.5 * median_distance(rows))(rows, rows))


def test_the_graph_draws_rows_of_one_cluster_together(rows):
    plain, bent = (GraphGaussian(strength=strength).fit(rows).gram(rows) for strength in (0.0, 100.0))

    def contrast(gram):
        scales = np.sqrt(np.diag(gram))
        cosines = gram / scales[:, None] / scales
        return cosines[:40, :40].mean() - cosines[:40, 40:].mean()

    assert contrast(bent) > contrast(plain) + 0.1


def test_float32_rows_give_float32_values(rows):
    small = rows.astype(np.float32)
    values = GraphGaussian().fit(small)(small, small)
    assert values.dtype == np.float32
    assert values == pytest.approx(GraphGaussian().fit(rows)(rows, rows), abs=1e-4)


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.array([[0.0], [1.0]]), np.zeros((1, 2))])
def test_few_distinct_rows_are_no_problem(X):
    values = GraphGaussian().fit(X)(X, X)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("bad", [{"factor": 0.0}, {"n_neighbors": 0}, {"strength": -1.0}])
def test_parameters_that_make_no_kernel_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        GraphGaussian(**bad)


def test_cannot_be_evaluated_before_fit(rows):
    with pytest.raises(TypeError, match="before fit"):
        GraphGaussian()(rows, rows)
