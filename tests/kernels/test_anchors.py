from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from starshl.kernels.anchors import (
    choose_anchors,
    gaussian_expansion,
    gaussian_features,
    kmeans_centers,
    mean_squared_distance,
)

X = np.random.default_rng(0).standard_normal((200, 4))


def test_random_anchors_are_distinct_rows():
    anchors = choose_anchors(X, "random", 20, random_state=0)
    assert anchors.shape == (20, 4)
    assert len({tuple(row) for row in anchors} & {tuple(row) for row in X}) == 20


@pytest.mark.parametrize("kind", ["random", "kmeans"])
def test_every_distinct_row_is_an_anchor_when_there_are_few(kind):
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    assert choose_anchors(rows, kind, 300).tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_given_anchors_are_kept_in_their_order_and_the_dtype_of_the_rows():
    given = [[1, 2, 3, 4], [0, 0, 0, 0], [1, 2, 3, 4]]
    anchors = choose_anchors(X.astype(np.float32), given)
    assert anchors.dtype == np.float32
    assert anchors.tolist() == [[1, 2, 3, 4], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"anchors": "grid"}, "anchors is 'grid'"),
        ({"anchors": np.ones((3, 5))}, r"shape \(3, 5\); it must be \(n_anchors, 4\)"),
        ({"anchors": np.full((3, 4), np.nan)}, "not finite"),
        ({"n_anchors": 0}, "n_anchors is 0"),
    ],
)
def test_bad_anchors_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_anchors(X, **arguments)


def test_kmeans_finds_separated_blobs_and_no_sweep_raises_the_distortion():
    blobs = np.concatenate([X[:50, :2] * 0.1 + center for center in ([0, 0], [9, 0], [0, 9])])
    distortions = []
    for n_sweeps in range(1, 8):
        centers = kmeans_centers(blobs, 8, np.random.RandomState(1), n_sweeps)
        distortions.append(cdist(blobs, centers, "sqeuclidean").min(axis=1).sum())
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(distortions))
    assert distortions[-1] < 3


def test_mean_squared_distance_is_the_mean_of_all():
    assert np.isclose(mean_squared_distance(X, X[:7] + 3), cdist(X, X[:7] + 3, "sqeuclidean").mean())
    assert mean_squared_distance(np.ones((4, 2)), np.ones((3, 2))) == 1.0


def test_gaussian_features_are_the_kernel():
    expected = np.exp(-cdist(X, X[:5], "sqeuclidean") / 2.5)
    assert np.allclose(gaussian_features(X, X[:5], 2.5), expected)


def test_gaussian_expansion_sums_weighted_kernel_values():
    weights, intercept = np.arange(10.0).reshape(2, 5), np.array([3.0, -1.0])
    expected = np.exp(-cdist(X, X[:5], "sqeuclidean") / 2.5) @ weights.T + intercept
    assert np.allclose(gaussian_expansion(X, X[:5], 2.5, weights, intercept), expected)
