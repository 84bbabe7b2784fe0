"""Partitions of a neighbor graph: modularity by hand, planted clusters, and graphs that are hard to cut."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from starshl import NeighborGraph
from starshl._common.threads import using_threads
from starshl.learning import cluster_graph, modularity, suggest_n_clusters
from starshl.learning.graphs.clusters import n_coherent_clusters, weight_inside
from starshl.learning.graphs.spectrum import leading_eigenpairs


def planted_rows(n_clusters, n_each, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = 12.0 * rng.standard_normal((n_clusters, 5))
    truth = np.repeat(np.arange(n_clusters), n_each)
    return centers[truth] + spread * rng.standard_normal((len(truth), 5)), truth


def clusters_of(graph, n_clusters, seed=0, coordinates=None):
    return cluster_graph(graph, n_clusters, np.random.RandomState(seed), coordinates)


def test_modularity_agrees_with_the_sum_by_hand():
    # Edges 0-1 and 2-3 of weight 1, and 1-2 of weight 1/2: degrees 1, 1.5, 1.5, 1 and 2m = 5.
    weights = np.zeros((4, 4))
    for i, j, weight in ((0, 1, 1.0), (2, 3, 1.0), (1, 2, 0.5)):
        weights[i, j] = weights[j, i] = weight
    graph = NeighborGraph(csr_array(weights), 1)
    assert modularity(graph, np.array([0, 0, 1, 1])) == pytest.approx(4 / 5 - 2 * (2.5 / 5) ** 2)
    assert modularity(graph, np.array([0, 0, 0, 0])) == pytest.approx(0.0)
    assert modularity(graph, np.array([0, 1, 2, 3])) == pytest.approx(-(1 + 2.25 + 2.25 + 1) / 25)


def test_modularity_of_a_graph_without_edges_is_zero():
    assert modularity(NeighborGraph(csr_array((3, 3)), 1), np.array([0, 1, 1])) == 0.0


def test_eigenpairs_agree_with_a_dense_decomposition():
    rows, _ = planted_rows(4, 150, spread=6.0)
    graph = NeighborGraph.of_rows(rows)
    values, vectors = leading_eigenpairs(graph, 12)
    exact = np.linalg.eigvalsh(graph.normalized.toarray())[::-1]
    assert np.allclose(values, exact[:12], atol=1e-5)
    assert np.allclose(graph.normalized @ vectors, vectors * values, atol=1e-3)
    fewer, _ = leading_eigenpairs(graph, 3)
    assert np.array_equal(fewer, values[:3])


@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_planted_clusters_are_found(spread):
    rows, truth = planted_rows(6, 80, spread)
    found = clusters_of(NeighborGraph.of_rows(rows), 6)
    assert adjusted_rand_score(truth, found) > 0.95


def test_partition_has_no_lower_modularity_than_the_planted_one():
    rows, truth = planted_rows(5, 60, spread=6.0)
    graph = NeighborGraph.of_rows(rows)
    assert modularity(graph, clusters_of(graph, 5, coordinates=rows)) >= modularity(graph, truth)


def test_clusters_are_numbered_by_their_size():
    rows, truth = planted_rows(3, 60)
    kept = np.concatenate([np.flatnonzero(truth == cluster)[:size] for cluster, size in ((0, 46), (1, 60), (2, 52))])
    assert np.bincount(clusters_of(NeighborGraph.of_rows(rows[kept]), 3)).tolist() == [60, 52, 46]


def test_permuted_rows_get_the_same_clusters():
    rows, _ = planted_rows(4, 60, spread=3.0)
    order = np.random.default_rng(1).permutation(len(rows))
    before = clusters_of(NeighborGraph.of_rows(rows), 4)
    after = clusters_of(NeighborGraph.of_rows(rows[order]), 4)
    assert adjusted_rand_score(before[order], after) == 1.0


def test_clusters_do_not_depend_on_the_number_of_threads():
    rows, _ = planted_rows(4, 110, spread=8.0)
    results = []
    for n_jobs in (1, 3):
        with using_threads(n_jobs):
            graph = NeighborGraph.of_rows(rows)
            results.append(
                (clusters_of(graph, 4, coordinates=rows), suggest_n_clusters(graph, np.random.RandomState(0)))
            )
    assert np.array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("n_clusters", [2, 5, 9])
def test_graphs_of_many_islands_are_cut_between_islands(n_clusters):
    rows, truth = planted_rows(9, 30, spread=0.01)
    graph = NeighborGraph.of_rows(rows)
    assert graph.n_connected_components == 9
    found = clusters_of(graph, n_clusters)
    assert len(np.unique(found)) == n_clusters
    assert all(len(np.unique(found[truth == island])) == 1 for island in range(9))


def test_graph_without_edges_and_rows_without_neighbors_are_taken():
    assert len(clusters_of(NeighborGraph(csr_array((12, 12)), 1), 3)) == 12
    rows, truth = planted_rows(3, 40)
    rows = np.concatenate([rows, [[1e6] * 5]])
    found = clusters_of(NeighborGraph.of_rows(rows), 3, coordinates=rows)
    assert adjusted_rand_score(truth, found[:-1]) > 0.9


def test_fewer_distinct_rows_than_clusters_give_equal_rows_the_same_cluster():
    rows = np.repeat(np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]]), 20, axis=0)
    found = clusters_of(NeighborGraph.of_rows(rows), 8, coordinates=rows)
    assert found.max() < 8
    assert len(np.unique(clusters_of(NeighborGraph.of_rows(rows), 3))) == 3


def test_more_clusters_than_kept_eigenvectors_are_taken():
    rows, truth = planted_rows(44, 8, spread=0.3)
    found = clusters_of(NeighborGraph.of_rows(rows, n_neighbors=4), 44)
    assert adjusted_rand_score(truth, found) > 0.9


def test_suggested_number_is_that_of_planted_clusters():
    rows, _ = planted_rows(6, 50)
    assert abs(suggest_n_clusters(NeighborGraph.of_rows(rows), np.random.RandomState(0)) - 6) <= 1


def test_clusters_that_part_near_rows_are_not_coherent():
    rows, _ = planted_rows(4, 40)
    graph = NeighborGraph.of_rows(rows)
    assert n_coherent_clusters(graph, 4, np.random.RandomState(0)) == 4
    assert n_coherent_clusters(graph, 7, np.random.RandomState(0)) == 4
    assert n_coherent_clusters(graph, 64, np.random.RandomState(0)) in (4, 8)
    line = NeighborGraph.of_rows(np.linspace(0, 1, 200)[:, None])
    assert (weight_inside(line, np.zeros(200, int)), weight_inside(line, np.arange(200))) == (1.0, 0.0)


@pytest.mark.parametrize("n_clusters", [0, 1000, 2.5, "three"])
def test_impossible_numbers_of_clusters_are_refused(n_clusters):
    rows, _ = planted_rows(2, 20)
    with pytest.raises((ValueError, TypeError), match="n_clusters"):
        clusters_of(NeighborGraph.of_rows(rows), n_clusters)


def test_clusters_are_as_many_as_asked_for_where_modularity_wants_fewer():
    rows = np.random.default_rng(0).standard_normal((6, 2))
    for n_clusters in (3, 6):
        assert len(np.unique(clusters_of(NeighborGraph.of_rows(rows), n_clusters))) == n_clusters


def test_as_many_clusters_as_rows_are_single_rows():
    graph = NeighborGraph.of_rows(np.random.default_rng(0).normal(size=(20, 2)), n_neighbors=3)
    assert cluster_graph(graph, 20, np.random.RandomState(0)).tolist() == list(range(20))
