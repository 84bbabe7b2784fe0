"""NeighborGraph: exact neighbors, the weights by hand, and what must not change them."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random
from scipy.spatial.distance import cdist

from starshl import NeighborGraph
from starshl._common.bundle import read_bundle, write_bundle
from starshl.exceptions import BundleFormatError
from starshl.learning.graphs.neighbor_graph import nearest_neighbors, principal_coordinates


def dense_weights(rows, n_neighbors=7):
    """The definition, with dense arrays."""
    distances = cdist(rows, rows)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    sigma = np.sort(distances, axis=1)[:, n_neighbors - 1]
    weights = np.zeros_like(distances)
    for i, neighbors in enumerate(nearest):
        weights[i, neighbors] = np.exp(-(distances[i, neighbors] ** 2) / (sigma[i] * sigma[neighbors]))
    return (weights + weights.T) / 2


def is_same(first, second):
    return all(
        np.array_equal(getattr(first.weights, name), getattr(second.weights, name))
        for name in ("data", "indices", "indptr")
    )


def test_weights_agree_with_the_definition():
    rows = np.random.default_rng(0).standard_normal((90, 6)) + 100.0
    graph = NeighborGraph.of_rows(rows)
    assert np.allclose(graph.weights.toarray(), dense_weights(rows))
    assert np.allclose(graph.degrees, dense_weights(rows).sum(axis=1))
    scale = 1 / np.sqrt(graph.degrees)
    assert np.allclose(graph.normalized.toarray(), dense_weights(rows) * scale[:, None] * scale)


def test_neighbors_are_exact_where_float32_cannot_tell_rows_apart():
    rng = np.random.default_rng(1)
    # Within a clump, distances are 1e-5 of the distance to the origin: float32 products see zeros only.
    clumps = rng.standard_normal((6, 3)) / 3
    rows = np.concatenate([clump + 1e-5 * rng.standard_normal((60, 3)) for clump in clumps])
    distances, neighbors = nearest_neighbors(rows, 7)
    exact = cdist(rows, rows, "sqeuclidean")
    np.fill_diagonal(exact, np.inf)
    assert np.array_equal(neighbors, np.argsort(exact, axis=1, kind="stable")[:, :7])
    assert np.allclose(distances, np.sort(exact, axis=1)[:, :7], rtol=1e-9)


def test_neighbors_are_exact_over_several_blocks_of_columns():
    rows = np.random.default_rng(2).standard_normal((4500, 8)) / 8
    _, neighbors = nearest_neighbors(rows, 5)
    some = np.arange(0, 4500, 37)
    exact = cdist(rows[some], rows)
    exact[np.arange(len(some)), some] = np.inf
    assert np.array_equal(neighbors[some], np.argsort(exact, axis=1, kind="stable")[:, :5])


@pytest.mark.parametrize("n_rows", [63, 64, 65, 511, 512, 513, 575, 577])
def test_neighbors_are_exact_where_a_block_of_columns_ends(n_rows):
    rows = np.random.default_rng(n_rows).integers(3, size=(n_rows, 4)) / 4.0  # with many equal distances, all exact
    _, neighbors = nearest_neighbors(rows, 7)
    exact = cdist(rows, rows, "sqeuclidean")
    np.fill_diagonal(exact, np.inf)
    np.testing.assert_array_equal(neighbors, np.argsort(exact, axis=1, kind="stable")[:, :7])


def test_more_features_than_components_are_reduced_to_the_principal_ones():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((80, 5)) @ rng.standard_normal((5, 30)) * 3 + 1e-9 * rng.standard_normal((80, 30))
    # All variance lies in five directions, so that nothing is lost.
    assert np.allclose(NeighborGraph.of_rows(rows, n_components=5).weights.toarray(), dense_weights(rows), atol=1e-6)


@pytest.mark.parametrize("n_features", [60, 3000])
def test_sparse_rows_have_the_neighbors_of_the_same_rows_made_dense(n_features):
    rng = np.random.default_rng(4)
    topics = random(12, n_features, density=0.1, random_state=rng).toarray() * np.geomspace(1, 9, 12)[:, None]
    rows = topics[rng.integers(12, size=150)] * (rng.random((150, 1)) + 0.5)
    dense, sparse = NeighborGraph.of_rows(rows), NeighborGraph.of_rows(csr_array(rows))
    assert np.allclose(dense.weights.toarray(), sparse.weights.toarray(), atol=1e-5)


def test_the_graph_of_a_kernel_is_that_of_its_distances():
    rows = np.random.default_rng(5).standard_normal((70, 4))
    kernel = rows @ rows.T + 3.0
    assert np.allclose(NeighborGraph.of_kernel(kernel).weights.toarray(), dense_weights(rows))


def test_several_kernels_count_equally_whatever_their_units():
    rng = np.random.default_rng(6)
    first, second = rng.standard_normal((2, 40, 3))
    kernels = [first @ first.T, second @ second.T]
    together = NeighborGraph.of_kernel([kernels[0], 1e6 * kernels[1]])
    mean = sum(kernel / np.diag(kernel).mean() for kernel in kernels) / 2
    assert np.allclose(together.weights.toarray(), NeighborGraph.of_kernel(mean).weights.toarray())


def test_permuting_rows_permutes_the_graph():
    rng = np.random.default_rng(7)
    rows, order = rng.standard_normal((120, 60)), rng.permutation(120)
    graph, permuted = NeighborGraph.of_rows(rows), NeighborGraph.of_rows(rows[order])
    assert np.allclose(graph.weights.toarray()[np.ix_(order, order)], permuted.weights.toarray())


def test_the_number_of_threads_does_not_change_a_bit():
    rows = np.random.default_rng(8).standard_normal((1500, 70)).astype(np.float32)
    assert is_same(NeighborGraph.of_rows(rows, n_jobs=1), NeighborGraph.of_rows(rows, n_jobs=3))


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30])
def test_the_unit_of_the_rows_does_not_matter(scale):
    rows = np.random.default_rng(9).standard_normal((60, 55))
    graph, scaled = NeighborGraph.of_rows(rows), NeighborGraph.of_rows(scale * rows)
    assert np.allclose(graph.weights.toarray(), scaled.weights.toarray(), atol=1e-10)


def test_identical_rows_stay_joined_to_the_others():
    rows = np.random.default_rng(10).standard_normal((50, 3))
    rows[:6] = rows[0]  # fewer copies than neighbors: each has neighbors beyond its copies
    graph = NeighborGraph.of_rows(rows)
    assert np.isfinite(graph.weights.data).all()
    assert graph.n_connected_components == 1


def test_rows_that_are_all_identical_make_a_graph():
    graph = NeighborGraph.of_rows(np.ones((12, 3)))
    assert np.all(graph.weights.data > 0)
    assert np.all(graph.degrees > 0)


def test_many_identical_rows_keep_to_themselves():
    rng = np.random.default_rng(11)
    rows = np.concatenate([np.zeros((30, 2)), rng.standard_normal((40, 2)) + 5])
    graph = NeighborGraph.of_rows(rows)
    assert set(graph.components[:30]).isdisjoint(graph.components[30:])


def test_a_far_outlier_has_no_neighbors():
    rows = np.random.default_rng(12).standard_normal((60, 3))
    rows[17] = 1e4
    graph = NeighborGraph.of_rows(rows)
    assert graph.degrees[17] == 0
    assert np.isfinite(graph.normalized.data).all()
    assert np.count_nonzero(graph.degrees == 0) == 1


def test_few_rows_have_as_many_neighbors_as_there_are():
    graph = NeighborGraph.of_rows([[0.0], [1.0], [3.0]])
    assert graph.n_neighbors == 2
    assert repr(graph) == "NeighborGraph(3 rows, 2 neighbors, 1 connected component)"


def test_a_saved_graph_comes_back_the_same(tmp_path):
    rows = np.random.default_rng(13).standard_normal((50, 4))
    graph = NeighborGraph.of_rows(rows)
    graph.save(tmp_path / "graph.starshl")
    assert is_same(graph, NeighborGraph.load(tmp_path / "graph.starshl"))


DAMAGE = {
    "a column beyond the rows": lambda arrays: arrays["columns"].__setitem__(0, 10**6),
    "a negative column": lambda arrays: arrays["columns"].__setitem__(0, -1),
    "falling ends": lambda arrays: arrays["ends"].__setitem__(1, 10**6),
    "a weight of NaN": lambda arrays: arrays["values"].__setitem__(0, np.nan),
    "a negative weight": lambda arrays: arrays["values"].__setitem__(0, -1.0),
    "weights that are not symmetric": lambda arrays: arrays["values"].__setitem__(0, 0.123),
    "a missing array": lambda arrays: arrays.pop("ends"),
    "weights of another type": lambda arrays: arrays.update(values=arrays["values"].astype(np.float32)),
    "too few columns": lambda arrays: arrays.update(columns=arrays["columns"][1:]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_sealed_file_with_wrong_edges_is_refused(tmp_path, damage):
    path = tmp_path / "graph.starshl"
    NeighborGraph.of_rows(np.random.default_rng(14).standard_normal((30, 4))).save(path)
    header, arrays = read_bundle(path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    damage(arrays)
    write_bundle(path, header, arrays)
    with pytest.raises(BundleFormatError, match="not the edges"):
        NeighborGraph.load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_bundle(tmp_path / "other", {"method": "LSHash"}, {"values": np.ones(3)})
    with pytest.raises(BundleFormatError, match="holds no neighbor graph"):
        NeighborGraph.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0.0], [np.nan]], "contains NaN in column 0"),
        ([[0.0]], "minimum of 2 is required"),
        ([0.0, 1.0], "1D array"),
    ],
)
def test_rows_without_a_graph_are_refused(rows, words):
    with pytest.raises(ValueError, match=words):
        NeighborGraph.of_rows(rows)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (np.ones((3, 2)), "must be \\(n_rows, n_rows\\)"),
        (np.full((3, 3), np.nan), "NaN or infinity"),
        (np.triu(np.ones((3, 3))), "not symmetric"),
        (-np.eye(3), "not positive semi-definite"),
    ],
)
def test_matrices_that_are_no_kernels_are_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        NeighborGraph.of_kernel(kernel)


def test_bad_numbers_of_neighbors_are_refused():
    with pytest.raises(ValueError, match="n_neighbors is 0"):
        NeighborGraph.of_rows([[0.0], [1.0]], n_neighbors=0)


def test_coordinates_are_centered_and_at_most_of_length_one():
    coordinates = principal_coordinates(np.random.default_rng(15).standard_normal((40, 90)) + 7.0, 50)
    assert coordinates.shape[1] <= 50
    assert np.allclose(coordinates.mean(axis=0), 0)
    assert np.isclose(np.linalg.norm(coordinates, axis=1).max(), 1.0)
