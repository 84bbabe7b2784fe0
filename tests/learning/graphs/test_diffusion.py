"""The diffusion kernel against dense linear algebra."""

import numpy as np
import pytest

from starshl import NeighborGraph
from starshl.learning.graphs import diffusion
from starshl.learning.graphs.diffusion import diffusion_columns, diffusion_gram, ridge_scores, scores_without_own_label


def dense_kernel(graph):
    phi = np.sqrt(graph.degrees / graph.degrees.sum())
    inverse = np.linalg.inv(np.eye(graph.n_rows) - 0.99 * graph.normalized.toarray())
    return inverse - np.outer(phi, phi) / (1 - 0.99)


def connected():
    return np.random.default_rng(0).standard_normal((90, 4))


def two_islands():
    rng = np.random.default_rng(1)
    return np.concatenate([rng.standard_normal((50, 3)), rng.standard_normal((40, 3)) + 100])


def with_outlier():
    rows = connected()
    rows[5] = 1e4
    return rows


@pytest.fixture(params=[connected, two_islands, with_outlier])
def graph(request):
    return NeighborGraph.of_rows(request.param())


def test_columns_agree_with_a_dense_inverse(graph):
    rows = np.array([3, 5, 60, 89])
    # The tolerance of the residual is 1e-4 of the right-hand side; the inverse enlarges it up to 100 times.
    assert np.allclose(diffusion_columns(graph, rows), dense_kernel(graph)[rows], atol=5e-3)


def test_scores_agree_with_dense_ridge_regression(graph):
    labeled = np.array([1, 5, 20, 55, 70, 80])
    targets = np.random.default_rng(2).standard_normal((6, 3))
    kernel = dense_kernel(graph)
    kernel /= np.mean(np.diag(kernel)[labeled])
    dual = np.linalg.solve(kernel[np.ix_(labeled, labeled)] + 0.1 * np.eye(6), targets)
    assert np.allclose(ridge_scores(graph, labeled, targets), kernel[:, labeled] @ dual, atol=2e-2)


def test_leaving_out_a_label_agrees_with_a_fit_without_it(graph):
    labeled = np.array([1, 7, 20, 55, 70])
    targets = np.random.default_rng(3).standard_normal((5, 2))
    gram = diffusion_gram(graph, labeled) + 0.1 * np.eye(5)
    positions, found = scores_without_own_label(graph, labeled, targets)
    assert np.array_equal(positions, np.arange(5))
    for out in range(5):
        rest = np.delete(np.arange(5), out)
        dual = np.linalg.solve(gram[np.ix_(rest, rest)], targets[rest])
        assert np.allclose(found[out], gram[out, rest] @ dual)


def test_many_labels_are_solved_for_per_class_with_the_same_scores(graph, monkeypatch):
    labeled = np.sort(np.random.default_rng(4).permutation(graph.n_rows)[:60])
    targets = np.eye(3)[np.arange(60) % 3] - 1 / 3
    exact = ridge_scores(graph, labeled, targets)
    monkeypatch.setattr(diffusion, "MOST_COLUMNS", 50)
    # All 60 labels give the mean diagonal, as they do above, because there are 200 steps along them.
    assert np.allclose(ridge_scores(graph, labeled, targets), exact, atol=5e-2)
    positions, held_out = scores_without_own_label(graph, labeled, targets)
    rest = np.setdiff1d(np.arange(60), positions)
    assert len(positions) == 6
    assert np.allclose(held_out, ridge_scores(graph, labeled[rest], targets[rest])[labeled[positions]])


def test_a_new_label_costs_one_column_and_changes_no_other(graph):
    first = diffusion_columns(graph, np.array([4, 9])).copy()
    kept = graph.cache["diffusion_columns"]
    identity = id(kept[4])
    again = diffusion_columns(graph, np.array([9, 30, 4]))
    assert sorted(kept) == [4, 9, 30]
    assert id(kept[4]) == identity
    assert np.array_equal(again[[2, 0]], first)


def test_columns_do_not_depend_on_what_else_is_computed(graph):
    together = diffusion_columns(graph, np.array([2, 6, 8]))
    fresh = NeighborGraph(graph.weights, graph.n_neighbors)
    assert np.array_equal(diffusion_columns(fresh, np.array([6]))[0], together[1])
