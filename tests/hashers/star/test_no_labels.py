"""StarRidge, and in one respect StarSHL, without a single label: clusters of the graph stand in for classes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score, homogeneity_score

import starshl
from starshl import NeighborGraph, StarRidge, StarSHL


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 4, centers=3, random_state=0)


def test_clusters_of_digits_are_digits():
    X, y = load_digits(return_X_y=True)
    hasher = StarRidge(16, n_codewords=10, random_state=0).fit(X[:700])
    assert adjusted_rand_score(y[:700], hasher.transduction_) > 0.75  # k-means: 0.6
    assert adjusted_rand_score(y[700:1200], hasher.predict(X[700:1200])) > 0.7
    assert "10 clusters of the graph" in hasher.choice_


def test_the_number_of_clusters_is_suggested_and_said_to_be_a_suggestion(blobs):
    X, y = blobs
    hasher = StarRidge(8, random_state=0).fit(X)
    assert homogeneity_score(y, hasher.transduction_) > 0.999  # a blob may be two clusters, never half of two blobs
    assert f"the number {len(hasher.classes_)} is a suggestion" in hasher.choice_


def test_all_rows_unlabeled_is_the_same_as_no_labels(blobs):
    X, _ = blobs
    first, second = (StarRidge(8, n_codewords=3, random_state=0).fit(X, y) for y in (None, np.full(150, -1)))
    assert np.array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize("n_features", [3, 100])
@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_rows_that_are_all_equal_are_one_cluster(method, n_features):
    hasher = method(4, n_codewords=2, random_state=0).fit(np.ones((20, n_features)))
    assert "you asked for 2, more than there are distinct rows" in hasher.choice_
    assert len(np.unique(hasher.transduction_)) == 1


@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_a_label_that_is_the_number_of_a_cluster_changes_no_code(method, blobs):
    X, y = blobs
    hasher = method(8, n_codewords=3, random_state=0).fit(X)
    assert hasher.encode_database(X, y) == hasher.encode_database(X)
    assert "relabel" not in hasher.supports
    with pytest.raises(AttributeError):
        hasher.relabel  # noqa: B018


def test_a_given_graph_is_used_and_a_wrong_one_refused(blobs):
    X, _ = blobs
    alone = StarRidge(8, n_codewords=3, random_state=0).fit(X)
    given = StarRidge(8, n_codewords=3, random_state=0).fit(X, graph=NeighborGraph.of_rows(X))
    assert np.array_equal(alone.transduction_, given.transduction_)
    with pytest.raises(ValueError, match="The graph has 60 rows"):
        StarRidge(8, n_codewords=3).fit(X, graph=NeighborGraph.of_rows(X[:60]))


def test_rows_of_weight_zero_do_not_take_part(blobs):
    X, y = blobs
    weights = np.where(y == 0, 0.0, 1.0)
    hasher = StarRidge(8, n_codewords=2, random_state=0).fit(X, sample_weight=weights)
    assert adjusted_rand_score(y[y > 0], hasher.transduction_[y > 0]) == 1.0
    assert hasher.dual_coef_[:, y == 0].any() == np.False_


def test_a_saved_hasher_comes_back(blobs, tmp_path):
    X, _ = blobs
    hasher = StarRidge(8, n_codewords=3, random_state=0).fit(X)
    hasher.save(tmp_path / "hasher")
    loaded = starshl.load(tmp_path / "hasher")
    assert np.array_equal(hasher.encode(X).packed, loaded.encode(X).packed)
    assert np.array_equal(hasher.training_codes_.packed, loaded.training_codes_.packed)


def test_a_y_without_any_label_is_no_request_for_a_suggestion(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match=r"All 150 rows.*unlabeled"):
        StarRidge(8).fit(X, np.full(150, -1))


def test_ignoring_unlabeled_rows_leaves_nothing_to_learn_from(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match="unlabeled"):
        StarRidge(8, unlabeled="ignore").fit(X, np.full(150, -1))


def test_the_choice_does_not_claim_more_clusters_than_distinct_rows():
    X = np.random.default_rng(0).normal(size=(12, 3))
    hasher = StarRidge(8, n_codewords=30, random_state=0).fit(X)
    assert len(hasher.classes_) <= 12
    assert "12 clusters of the graph" in hasher.choice_
    assert "you asked for 30, more than there are distinct rows" in hasher.choice_
