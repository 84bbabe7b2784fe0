import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from starshl.hashers.baselines import AnchorGraphHash
from starshl.hashers.baselines.anchor_graph import (
    anchor_affinities,
    nearest_anchors,
    second_layer_thresholds,
    smooth_functions,
)

X = load_digits().data[:400] / 16.0


def graph(n_anchors=40, n_neighbors=3):
    hasher = AnchorGraphHash(4, n_anchors=n_anchors, n_neighbors=n_neighbors, random_state=0).fit(X)
    return hasher, anchor_affinities(
        *nearest_anchors(X, hasher.anchors_, n_neighbors), hasher.sigma_, len(hasher.anchors_)
    )


def test_graph_weights_are_the_gaussians_of_the_nearest_anchors():
    hasher, Z = graph()
    distances = cdist(X, hasher.anchors_, "sqeuclidean")
    weights = np.exp(-distances / hasher.sigma_**2)
    weights[distances > np.sort(distances, axis=1)[:, 2:3] + 1e-9] = 0
    assert np.allclose(Z.toarray(), weights / weights.sum(axis=1, keepdims=True))
    assert np.allclose(Z.sum(axis=1), 1)
    assert np.isclose(hasher.sigma_, np.sqrt(np.sort(distances, axis=1)[:, 2]).mean())


def test_scores_are_the_eigenvectors_of_the_dense_graph():
    _, Z = graph()
    W, values = smooth_functions(Z, 5, 1e-3)
    Y = Z @ W
    adjacency = (Z / Z.sum(axis=0)) @ Z.T
    expected = np.sort(np.linalg.eigvalsh(adjacency.toarray()))[::-1]
    expected = expected[expected < 1 - 1e-3][:5]
    assert np.allclose(values, expected)
    assert np.allclose(adjacency @ Y, Y * values)


def test_training_scores_are_uncorrelated_and_centered():
    Y = AnchorGraphHash(12, random_state=0).fit(X).decision_function(X)
    assert np.allclose(Y.T @ Y / len(X), np.eye(12), atol=1e-8)
    assert np.allclose(Y.sum(axis=0), 0, atol=1e-7)


def test_trivial_eigenvector_has_eigenvalue_one():
    _, Z = graph()
    degrees = Z.sum(axis=0)
    M = (Z.T @ Z).toarray() / np.sqrt(np.outer(degrees, degrees))
    assert np.allclose(M @ np.sqrt(degrees), np.sqrt(degrees))
    assert np.linalg.eigvalsh(M)[-1] < 1 + 1e-12


def test_second_layer_thresholds_minimize_the_cut_that_sums_to_zero():
    _, Z = graph()
    W, _ = smooth_functions(Z, 3, 1e-3)
    Y = Z @ W
    laplacian = np.eye(len(X)) - ((Z / Z.sum(axis=0)) @ Z.T).toarray()
    for y, found in zip(Y.T, second_layer_thresholds(Z, Y).T, strict=True):
        upper = (y >= 0).astype(float)

        def vector(b, y=y, upper=upper):
            return np.abs(y) - b[0] * upper + b[1] * (1 - upper)

        best = minimize(
            lambda b, vector=vector: vector(b) @ laplacian @ vector(b),
            [0.0, 0.0],
            constraints={"type": "eq", "fun": lambda b, vector=vector: vector(b).sum()},
            tol=1e-14,
        )
        assert np.allclose(found, best.x, atol=1e-4)
        assert abs(vector(found).sum()) < 1e-8


def test_first_layer_of_two_equals_one_layer_of_half_the_bits():
    one = AnchorGraphHash(6, random_state=0).fit_transform(X)
    two = AnchorGraphHash(12, variant="two_layers", random_state=0).fit_transform(X)
    assert np.array_equal(two[:, :6], one)
    # Each second bit cuts both sides of its first bit.
    for bit in range(6):
        for side in (-1, 1):
            assert len(np.unique(two[one[:, bit] == side, 6 + bit])) == 2


def test_functions_that_only_tell_separate_clusters_apart_are_skipped():
    rng = np.random.default_rng(0)
    blobs = np.concatenate([rng.standard_normal((60, 2)), rng.standard_normal((60, 2)) + 1000])
    hasher = AnchorGraphHash(2, n_anchors=20, random_state=0).fit(blobs)
    scores = hasher.decision_function(blobs)
    assert hasher.eigenvalues_[0] < 1 - 1e-3
    # Orthogonal to the indicator of each cluster, so centered within both.
    assert np.allclose([scores[:60].sum(axis=0), scores[60:].sum(axis=0)], 0, atol=1e-8)


def test_row_of_very_distant_anchors_still_has_weights():
    hasher = AnchorGraphHash(4, n_anchors=40, random_state=0).fit(X)
    assert np.isfinite(hasher.decision_function(X[:2] + 1e6)).all()


def test_given_anchors_and_sigma_are_used():
    hasher = AnchorGraphHash(3, anchors=X[:30], sigma=2.0).fit(X)
    assert hasher.sigma_ == 2.0
    assert {tuple(row) for row in hasher.anchors_} <= {tuple(row) for row in X[:30]}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 7, "variant": "two_layers"}, "n_bits is 7"),
        ({"n_bits": 1, "variant": "two_layers"}, r"Use 2\."),
        ({"n_bits": 32, "n_anchors": 10}, "n_samples=400 gives at most"),
        ({"variant": "three_layers"}, "variant is 'three_layers'"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"anchors": "grid"}, "anchors is 'grid'"),
        ({"n_neighbors": 0}, "n_neighbors is 0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        AnchorGraphHash(**parameters).fit(X)
