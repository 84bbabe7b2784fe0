import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from starshl.hashers.baselines import KMeansHash
from starshl.hashers.baselines.kmeans_hash import all_words, deal_out, learn_centers, move_centers, objective


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0] / 16.0


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 3)) * [3, 2, 1]


def test_moving_centers_never_raises_the_objective(digits):
    history = KMeansHash(12).fit(digits).objective_history_.reshape(-1, 2)
    assert len(history) > 3
    assert np.all(history[:, 1] <= history[:, 0] + 1e-12)
    assert history[-1, 1] < history[0, 1]


def test_moved_center_reaches_the_minimum_a_generic_optimizer_finds(rows):
    centers = np.random.default_rng(1).standard_normal((4, 3))
    targets = 2 * np.sqrt((2 - all_words(2) @ all_words(2).T) / 2)
    owners = cdist(rows, centers).argmin(axis=1)
    shares = np.bincount(owners, minlength=4) / 200
    means = np.array([rows[owners == j].mean(axis=0) for j in range(4)])
    for _ in range(2000):
        move_centers(centers, means, shares, targets, 10.0)

    def of(flat):
        return objective(rows, owners, flat.reshape(4, 3), targets, 10.0)

    assert of(centers.ravel()) <= minimize(of, centers.ravel(), method="L-BFGS-B").fun + 1e-6


def test_objective_equals_a_double_sum(rows):
    rng = np.random.default_rng(1)
    centers, owners = rng.standard_normal((4, 3)), rng.integers(4, size=200)
    targets = rng.random((4, 4))
    targets = targets + targets.T
    np.fill_diagonal(targets, 0)
    expected = np.mean([np.sum((x - centers[o]) ** 2) for x, o in zip(rows, owners, strict=True)])
    for i, j in np.ndindex(4, 4):
        weight = np.sum(owners == i) * np.sum(owners == j) / 200**2
        expected += 3.0 * weight * (np.linalg.norm(centers[i] - centers[j]) - targets[i, j]) ** 2
    assert objective(rows, owners, centers, targets, 3.0) == pytest.approx(expected)


def test_no_affinity_weight_is_k_means(rows):
    centers, _ = learn_centers(rows, 2, 0.0, 200)
    start = np.zeros((4, 3))
    start[:, :2] = np.abs(rows[:, :2]).mean() * all_words(2)
    expected = KMeans(4, init=start, n_init=1, tol=0, max_iter=300).fit(rows).cluster_centers_
    np.testing.assert_allclose(centers, expected, atol=1e-8)


def test_overwhelming_affinity_weight_keeps_a_square(rows):
    centers, _ = learn_centers(rows, 2, 1e7, 10)
    edge = 2 * np.abs(rows[:, :2]).mean()
    expected = edge * np.sqrt((2 - all_words(2) @ all_words(2).T) / 2)
    np.testing.assert_allclose(cdist(centers, centers), expected, rtol=1e-3)


def test_codes_are_the_numbers_of_the_nearest_centers(digits):
    hasher = KMeansHash(6, bits_per_subspace=4).fit(digits)
    assert hasher.bits_.tolist() == [4, 2]
    codes = hasher.transform(digits)
    rotated = digits @ hasher.components_.T + hasher.intercept_
    first, second = np.split(rotated, [hasher.sizes_[0]], axis=1)
    expected = [
        all_words(4)[cdist(first, hasher.centers_[:16]).argmin(axis=1)],
        all_words(2)[cdist(second, hasher.centers_[16:, : hasher.sizes_[1]]).argmin(axis=1)],
    ]
    assert np.array_equal(codes, np.hstack(expected))


def test_directions_are_dealt_out_to_even_products():
    variances = np.geomspace(100, 1, 12)
    order = deal_out(variances, np.array([4, 4, 4]))
    assert sorted(np.concatenate(order)) == list(range(12))
    logs = [np.log(variances)[indices].sum() for indices in order]
    assert np.ptp(logs) < np.log(100) / 4


def test_affinity_helps_retrieval_at_many_bits(digits):
    y = load_digits(return_X_y=True)[1]
    order = np.random.default_rng(0).permutation(len(y))
    train, query = order[:1000], order[1000:]

    def precision(weight):
        hasher = KMeansHash(32, affinity_weight=weight).fit(digits[train])
        distances = hasher.encode(digits[query]).distances(hasher.encode(digits[train]))
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
        return np.mean(y[train][nearest] == y[query][:, None])

    # Measured .82 and .69: plain k-means numbers its clusters without regard to distance.
    assert precision(10.0) > precision(0.0) + 0.05


def test_more_bits_than_the_rank_are_refused_with_the_largest_allowed(digits):
    with pytest.raises(ValueError, match=r"n_bits is 64; .* at most 61 here"):
        KMeansHash(64).fit(digits)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"bits_per_subspace": 9}, "bits_per_subspace is 9"),
        ({"affinity_weight": -1}, "affinity_weight is -1"),
    ],
)
def test_bad_parameters_are_named(digits, params, match):
    with pytest.raises(ValueError, match=match):
        KMeansHash(4, **params).fit(digits)
