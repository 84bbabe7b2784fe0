"""Kernel k-means and the clusters that unsupervised training starts from."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from starshl.hashers.star.samples import SAMPLE_TYPES
from starshl.learning.kernels.banks import GramBank
from starshl.learning.kernels.kernel_k_means import kernel_k_means


def scatter(X, labels, weights):
    groups = [labels == c for c in np.unique(labels)]
    means = [np.average(X[group], axis=0, weights=weights[group]) for group in groups]
    return sum(weights[group] @ ((X[group] - mean) ** 2).sum(1) for group, mean in zip(groups, means, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
def test_linear_kernel_gives_the_clusters_of_k_means(weighted):
    X, _ = make_blobs(150, 4, centers=5, cluster_std=0.8, random_state=0)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 150) if weighted else np.ones(150)
    labels = kernel_k_means(X @ X.T, weights, 5, 10, np.random.RandomState(0))
    theirs = KMeans(5, n_init=10, random_state=0).fit(X, sample_weight=weights)
    assert adjusted_rand_score(labels, theirs.labels_) == 1
    assert scatter(X, labels, weights) == pytest.approx(theirs.inertia_)


def test_overlapping_clusters_are_not_worse_than_those_of_k_means():
    X = np.random.default_rng(1).normal(size=(120, 3))
    labels = kernel_k_means(X @ X.T, np.ones(120), 6, 10, np.random.RandomState(0))
    best = KMeans(6, n_init=10, random_state=0).fit(X).inertia_
    assert scatter(X, labels, np.ones(120)) <= 1.05 * best


def test_result_is_a_fixed_point():
    X = np.random.default_rng(2).normal(size=(80, 3))
    labels = kernel_k_means(X @ X.T, np.ones(80), 4, 3, np.random.RandomState(0))
    means = np.array([X[labels == c].mean(axis=0) for c in range(4)])
    assert np.array_equal(labels, ((X[:, None] - means[None]) ** 2).sum(2).argmin(1))


def test_adding_a_constant_to_the_kernel_changes_no_cluster():
    X = np.random.default_rng(3).normal(size=(60, 2))
    found = [kernel_k_means(X @ X.T + c, np.ones(60), 4, 5, np.random.RandomState(0)) for c in (0.0, 10.0)]
    assert np.array_equal(*found)


@pytest.mark.parametrize("n_clusters", [1, 3, 8])
def test_few_distinct_rows_are_no_problem(n_clusters):
    X = np.array([[0.0], [0.0], [5.0], [5.0], [9.0]])
    labels = kernel_k_means(X @ X.T, np.ones(5), n_clusters, 5, np.random.RandomState(0))
    assert len(np.unique(labels)) == min(n_clusters, 3)
    assert labels[0] == labels[1]
    assert labels[2] == labels[3]
    assert labels.max() < n_clusters


def clusters_of(X, kind, weights, n_clusters):
    bank = GramBank((X @ X.T)[None])
    return SAMPLE_TYPES[kind](X).clusters(bank, weights, n_clusters, np.random.RandomState(0))


@pytest.mark.parametrize("kind", ["vectors", "objects"])
def test_start_finds_blobs(kind):
    X, y = make_blobs(90, 3, centers=3, cluster_std=0.5, random_state=1)
    labels = clusters_of(X, kind, np.ones(90), 3)
    assert adjusted_rand_score(y, labels) == 1
    assert labels.dtype == np.int64


def test_weight_two_counts_as_a_repeated_row():
    X = np.random.default_rng(4).normal(size=(50, 2))
    weights = np.random.default_rng(5).integers(1, 4, 50)
    weighted = clusters_of(X, "vectors", weights.astype(float), 6)
    repeated = clusters_of(np.repeat(X, weights, axis=0), "vectors", np.ones(weights.sum()), 6)
    assert np.array_equal(np.repeat(weighted, weights), repeated)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["beside", "behind"])
def test_weight_two_counts_as_a_repeated_sample_of_a_kernel(order, dtype):
    X = np.random.default_rng(4).normal(size=(50, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(dtype)
    weights = np.random.default_rng(5).integers(1, 4, 50)
    repeats = np.repeat(np.arange(50), weights)
    if order == "behind":
        repeats = np.concatenate([np.arange(50), np.repeat(np.arange(50), weights - 1)])
    weighted = kernel_k_means(K, weights.astype(float), 6, 10, np.random.RandomState(0))
    repeated = kernel_k_means(K[np.ix_(repeats, repeats)], np.ones(len(repeats)), 6, 10, np.random.RandomState(0))
    assert np.array_equal(weighted[repeats], repeated)


def test_fewer_distinct_rows_than_clusters_get_one_each():
    X = np.array([[1.0], [2.0], [1.0]])
    assert clusters_of(X, "vectors", np.ones(3), 5).tolist() == [0, 1, 0]
