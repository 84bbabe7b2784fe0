"""Leave-one-out scores of the plain kernel against refits, and the kept inverse against a direct one."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist

from starshl import NeighborGraph
from starshl.learning.graphs.plain_ridge import (
    GivenKernel,
    RowsKernel,
    labeled_scores_without_own,
    leave_one_out,
    sampled_scores,
    scores_from_labeled,
    what_judges,
)

N_ROWS = 60


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((N_ROWS, 5))


@pytest.fixture
def targets():
    return np.eye(3)[np.random.default_rng(1).integers(3, size=N_ROWS)] - 1 / 3


def gaussian(rows):
    distances = np.sort(pdist(rows))
    median = distances[(len(distances) - 1) // 2]
    return np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * (0.5 * median) ** 2))


def refits(gram, ridge, targets):
    """Scores of every row from a fit without it."""
    scores = np.empty_like(targets)
    for out in range(len(gram)):
        rest = np.delete(np.arange(len(gram)), out)
        dual = np.linalg.solve(gram[np.ix_(rest, rest)] + np.diag(ridge[rest]), targets[rest])
        scores[out] = gram[out, rest] @ dual
    return scores


@pytest.mark.parametrize("pseudo_ridge", [0.1, 1.0, 5.5, 30.0])
@pytest.mark.parametrize("n_labeled", [1, 6, 40])
def test_scores_agree_with_refits_without_the_row(rows, targets, pseudo_ridge, n_labeled):
    labeled = np.sort(np.random.default_rng(2).permutation(N_ROWS)[:n_labeled])
    ridge = np.full(N_ROWS, pseudo_ridge)
    ridge[labeled] = 0.1
    found = leave_one_out(RowsKernel(rows), NeighborGraph.of_rows(rows), labeled, targets, pseudo_ridge)
    assert np.allclose(found, refits(gaussian(rows), ridge, targets), atol=1e-8)


def test_the_kept_inverse_serves_new_labels(rows, targets):
    graph, plain = NeighborGraph.of_rows(rows), RowsKernel(rows)
    leave_one_out(plain, graph, np.array([0, 1]), targets, 1.0)
    kept = graph.cache["plain_inverse"][1]
    ridge = np.full(N_ROWS, 1.0)
    ridge[[3, 8, 9]] = 0.1
    found = leave_one_out(plain, graph, np.array([3, 8, 9]), targets, 1.0)
    assert graph.cache["plain_inverse"][1] is kept
    assert np.allclose(found, refits(gaussian(rows), ridge, targets), atol=1e-8)


def test_the_kept_inverse_is_not_used_for_other_rows_or_another_ridge(rows, targets):
    graph, labeled = NeighborGraph.of_rows(rows), np.array([0, 5])
    leave_one_out(RowsKernel(rows), graph, labeled, targets, 1.0)
    for other, pseudo_ridge in ((rows[::-1].copy(), 1.0), (rows, 5.5)):
        ridge = np.full(N_ROWS, pseudo_ridge)
        ridge[labeled] = 0.1
        found = leave_one_out(RowsKernel(other), graph, labeled, targets, pseudo_ridge)
        assert np.allclose(found, refits(gaussian(other), ridge, targets), atol=1e-8)


def test_sparse_rows_and_given_kernels_have_the_same_scores(rows, targets):
    rows = np.where(rows > 0.3, rows, 0.0)
    graph, labeled = NeighborGraph.of_rows(rows), np.array([0, 5])
    dense = leave_one_out(RowsKernel(rows), graph, labeled, targets, 1.0)
    sparse = leave_one_out(RowsKernel(csr_array(rows)), graph, labeled, targets, 1.0)
    given = leave_one_out(GivenKernel(RowsKernel(rows).gram()), graph, labeled, targets, 1.0)
    assert np.allclose(dense, sparse, atol=1e-8)
    assert np.allclose(dense, given, atol=1e-8)


def test_scores_from_labeled_rows_are_plain_ridge_regression(rows, targets):
    labeled = np.array([2, 4, 40])
    gram = gaussian(rows)
    dual = np.linalg.solve(gram[np.ix_(labeled, labeled)] + 0.1 * np.eye(3), targets[labeled])
    assert np.allclose(scores_from_labeled(RowsKernel(rows), labeled, targets[labeled]), gram[:, labeled] @ dual)


def test_labeled_rows_without_their_own_label_agree_with_refits(rows, targets):
    labeled = np.array([2, 4, 17, 40, 41])
    gram = gaussian(rows)[np.ix_(labeled, labeled)]
    positions, found = labeled_scores_without_own(RowsKernel(rows), labeled, targets[labeled])
    assert np.array_equal(positions, np.arange(5))
    assert np.allclose(found, refits(gram, np.full(5, 0.1), targets[labeled]))


def test_a_sample_that_holds_all_rows_gives_the_exact_scores(rows, targets):
    labeled, on_graph = np.array([2, 4, 40]), np.zeros_like(targets)
    exact = leave_one_out(RowsKernel(rows), NeighborGraph.of_rows(rows), labeled, targets, 12.8)
    assert np.allclose(sampled_scores(RowsKernel(rows), labeled, targets, 12.8, on_graph), exact, atol=1e-8)


def test_a_sample_is_not_asked_where_the_graph_is_trusted(rows, targets):
    on_graph = np.ones_like(targets)
    assert sampled_scores(RowsKernel(rows), np.array([2]), targets, 1.0, on_graph) is on_graph


def test_a_matrix_that_is_no_kernel_is_refused(targets):
    matrix = -100.0 * np.eye(N_ROWS)
    graph = NeighborGraph.of_rows(np.arange(N_ROWS, dtype=float)[:, None])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        leave_one_out(GivenKernel(matrix), graph, np.array([0]), targets, 1.0)


def test_a_note_says_who_judges_when_there_are_too_many_rows_for_one_matrix():
    assert what_judges(10_000, ridge=1.0) == ""
    assert what_judges(10_001, ridge=1.0) == "; with more than 10,000 rows the graph alone decides"
    assert what_judges(10_001, ridge=30.0) == "; with more than 10,000 rows a sample of 5,000 rows judges the others"
