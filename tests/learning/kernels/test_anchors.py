from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from starshl.learning.kernels.anchors import (
    choose_anchors,
    gaussian_expansion,
    gaussian_features,
    gaussian_scale,
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
        ({"anchors": np.ones((3, 5))}, r"shape \(3, 5\)"),
        ({"anchors": np.full((3, 4), np.nan)}, "not finite"),
        ({"n_anchors": 0}, "n_anchors is 0"),
    ],
)
def test_bad_anchors_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_anchors(X, **arguments)


def test_kmeans_finds_separated_blobs_and_no_iteration_raises_the_distortion():
    blobs = np.concatenate([X[:50, :2] * 0.1 + center for center in ([0, 0], [9, 0], [0, 9])])
    distortions = []
    for max_iter in range(1, 8):
        centers = kmeans_centers(blobs, 8, np.random.RandomState(1), max_iter)
        distortions.append(cdist(blobs, centers, "sqeuclidean").min(axis=1).sum())
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(distortions))
    assert distortions[-1] < 3


def test_kmeans_leaves_no_group_of_rows_without_a_center():
    rng = np.random.default_rng(0)
    # One crowd of 1,000 rows and 20 small groups, most of which random starting rows would miss.
    crowd, groups = rng.standard_normal((1000, 2)), 1000 * rng.standard_normal((20, 2))
    rows = np.concatenate([crowd, *(center + 0.1 * rng.standard_normal((5, 2)) for center in groups)])
    centers = kmeans_centers(rows, 25, np.random.RandomState(0))
    assert cdist(groups, centers).min(axis=1).max() < 10


@pytest.mark.parametrize(("word", "share"), [("rms", 1.0), ("half_rms", 0.5)])
def test_each_word_for_a_width_has_one_meaning(word, share):
    sigma = share * np.sqrt(cdist(X, X[:7], "sqeuclidean").mean())
    assert gaussian_scale(word, X, X[:7]) == pytest.approx(2 * sigma**2)
    assert gaussian_scale(sigma, X, X[:7]) == pytest.approx(2 * sigma**2)


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
