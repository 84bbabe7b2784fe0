"""StarSHL with few labels and with none: what the neighbor graph decides, and what it must not."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import starshl
from starshl import NeighborGraph, StarSHL, spread_labels
from starshl.hashers.star.unlabeled import guess_clusters
from starshl.learning.graphs.plain_kernel import RowsKernel
from starshl.learning.kernels import Gaussian


def two_moons(n_each=60, seed=0):
    """Two half circles, one inside the other: neighbors tell them apart, and single distances do not."""
    rng = np.random.default_rng(seed)
    angles = np.pi * rng.uniform(size=2 * n_each)
    moon = np.repeat([0, 1], n_each)
    x = np.where(moon == 0, np.cos(angles), 1.0 - np.cos(angles))
    y = np.where(moon == 0, np.sin(angles), 0.5 - np.sin(angles))
    return np.column_stack([x, y]) + 0.04 * rng.standard_normal((2 * n_each, 2)), moon


def few(truth, n_labels, seed=1):
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for label in np.unique(truth):
        chosen = rng.permutation(np.flatnonzero(truth == label))[:n_labels]
        y[chosen] = label
    return y


def digits(n_rows=320):
    X, y = load_digits(return_X_y=True)
    return X[:n_rows], y[:n_rows]


def test_spread_labels_are_the_transduction():
    X, truth = digits()
    y = few(truth, 3)
    hasher = StarSHL(8, random_state=0).fit(X, y)
    assert np.array_equal(hasher.transduction_, spread_labels(X, y).labels)
    assert np.array_equal(hasher.transduction_[y >= 0], y[y >= 0])
    assert np.array_equal(hasher.classes_[hasher.assignments_], hasher.transduction_)
    assert hasher.n_reassigned_ == 0


def test_one_label_per_moon_is_enough_with_the_graph_and_not_with_the_nearest_codeword():
    X, truth = two_moons()
    y = few(truth, 1)
    by_graph = StarSHL(8, random_state=0).fit(X, y)
    nearest = StarSHL(8, random_state=0, unlabeled="nearest").fit(X, y)
    assert np.mean(by_graph.transduction_ == truth) > 0.97
    assert np.mean(by_graph.transduction_ == truth) > np.mean(nearest.transduction_ == truth) + 0.03


def test_moons_are_found_without_labels():
    X, truth = two_moons(90)
    hasher = StarSHL(8, n_codewords=2, random_state=0).fit(X)
    k_means = StarSHL(8, n_codewords=2, random_state=0, unlabeled="nearest").fit(X)
    assert adjusted_rand_score(truth, hasher.transduction_) > 0.6
    assert adjusted_rand_score(truth, hasher.transduction_) > adjusted_rand_score(truth, k_means.transduction_)


def test_number_of_codewords_may_be_left_out_and_is_said_to_be_a_suggestion():
    rng = np.random.default_rng(0)
    X = 20.0 * np.repeat(np.eye(4), 40, axis=0) + rng.standard_normal((160, 4))
    hasher = StarSHL(8, random_state=0).fit(X)
    assert abs(len(hasher.classes_) - 4) <= 2
    assert "suggestion" in hasher.choice_
    assert "suggestion" not in StarSHL(8, n_codewords=4, random_state=0).fit(X).choice_
    with pytest.raises(ValueError, match="n_codewords"):
        StarSHL(8, unlabeled="nearest").fit(X)
    with pytest.raises(ValueError, match="n_codewords"):
        StarSHL(8).fit(X, np.full(160, np.nan))


def test_choice_is_one_line_in_every_mode():
    X, truth = digits(120)
    y = few(truth, 2)
    fits = [
        StarSHL(4, random_state=0).fit(X, truth),
        StarSHL(4, random_state=0).fit(X, y),
        StarSHL(4, random_state=0, unlabeled="nearest").fit(X, y),
        StarSHL(4, random_state=0, n_codewords=3).fit(X),
        StarSHL(4, random_state=0, n_codewords=3, unlabeled="nearest").fit(X),
        StarSHL(4, random_state=0).fit(X, y, initial_assignments=np.zeros(120, dtype=int)),
    ]
    lines = [hasher.choice_ for hasher in fits]
    assert all(line and "\n" not in line for line in lines)
    assert len(set(lines)) == len(lines)


def test_a_graph_that_is_passed_gives_the_same_fit():
    X, truth = digits(200)
    y = few(truth, 2)
    graph = NeighborGraph.of_rows(X)
    for labels, n_codewords in ((y, None), (None, 10)):
        own = StarSHL(8, n_codewords=n_codewords, random_state=0).fit(X, labels)
        given = StarSHL(8, n_codewords=n_codewords, random_state=0).fit(X, labels, graph=graph)
        assert np.array_equal(own.dual_coef_, given.dual_coef_)
        assert own.training_codes_ == given.training_codes_


def test_graphs_of_other_rows_are_refused():
    X, truth = digits(100)
    with pytest.raises(ValueError, match="graph"):
        StarSHL(4).fit(X, few(truth, 2), graph=NeighborGraph.of_rows(X[:50]))
    with pytest.raises(TypeError, match="graph"):
        StarSHL(4).fit(X, few(truth, 2), graph="neighbors")


def test_rows_of_weight_zero_take_no_part_in_the_graph():
    X, truth = digits(160)
    y = few(truth, 2)
    weights = np.ones(160)
    weights[:40] = 0
    y[:40] = -1
    y[40:] = few(truth[40:], 2)
    with_them = StarSHL(8, random_state=0).fit(X, y, sample_weight=weights)
    without = StarSHL(8, random_state=0).fit(X[40:], y[40:])
    assert np.array_equal(with_them.transduction_[40:], without.transduction_)
    assert np.allclose(with_them.decision_function(X), without.decision_function(X))


def test_training_codes_are_codewords_of_labels_and_what_others_say():
    X, truth = digits()
    y = few(truth, 4)
    hasher = StarSHL(16, random_state=0).fit(X, y)
    codes = hasher.training_codes_.to_signs()
    known = y >= 0
    assert np.array_equal(codes[known], hasher.codewords_[np.searchsorted(hasher.classes_, y[known])])
    spread = spread_labels(X, y)
    expected = np.where(spread.probabilities ** (1 / 3) @ hasher.codewords_ >= 0, 1, -1)
    assert np.array_equal(codes[~known], expected[~known])
    nearest = StarSHL(16, random_state=0, unlabeled="nearest").fit(X, y)
    assert np.array_equal(nearest.training_codes_.to_signs()[~known], nearest.transform(X[~known]))


def test_items_of_a_database_get_the_codeword_of_a_known_label():
    X, truth = digits(200)
    names = np.array([f"digit {label}" for label in truth], dtype=object)
    hasher = StarSHL(12, random_state=0).fit(X[:150], names[:150])
    given = names[150:].copy()
    given[::2] = None
    given[1] = "a letter"
    codes = hasher.encode_database(X[150:], given).to_signs()
    own = hasher.transform(X[150:])
    assert np.array_equal(codes[::2], own[::2])
    assert np.array_equal(codes[1], own[1])
    index = np.searchsorted(hasher.classes_.astype(str), names[150:][3::2].astype(str))
    assert np.array_equal(codes[3::2], hasher.codewords_[index])
    assert hasher.encode_database(X[150:]) == hasher.encode(X[150:])


def test_training_codes_survive_a_file(tmp_path):
    X, truth = digits(150)
    hasher = StarSHL(12, random_state=0).fit(X, few(truth, 2))
    hasher.save(tmp_path / "model.shl")
    again = starshl.load(tmp_path / "model.shl")
    assert again.training_codes_ == hasher.training_codes_
    assert again.choice_ == hasher.choice_


def test_spread_labels_weigh_as_much_as_they_are_sure():
    rng = np.random.default_rng(0)
    X, truth = rng.standard_normal((150, 20)), np.repeat([0, 1, 2], 50)
    y = few(truth, 5)
    confidences = spread_labels(X, y).confidences
    hasher = StarSHL(6, random_state=0, C=10.0).fit(X, y)
    bounds = 10.0 * np.where(y >= 0, 1.0, confidences**2)
    assert np.all(np.abs(hasher.dual_coef_) <= bounds + 1e-6)
    assert hasher.dual_coef_[:, y >= 0].any()


def test_precomputed_kernels_and_objects_follow_their_own_distances():
    X, truth = two_moons(40)
    y = few(truth, 2)
    kernel = Gaussian(0.3)
    precomputed = StarSHL(8, kernels="precomputed", random_state=0).fit(kernel(X, X), y)
    assert np.mean(precomputed.transduction_ == truth) > 0.9

    def closeness(a, b):
        return float(np.exp(-np.sum((np.array(a) - np.array(b)) ** 2) / 0.18))

    objects = StarSHL(8, kernels=[closeness], random_state=0).fit([tuple(row) for row in X.tolist()], y)
    assert np.array_equal(objects.transduction_, precomputed.transduction_)
    clusters = StarSHL(8, kernels="precomputed", n_codewords=2, random_state=0).fit(kernel(X, X))
    assert set(np.unique(clusters.transduction_)) == {0, 1}


def test_results_do_not_depend_on_the_number_of_threads():
    X, truth = digits(200)
    for labels, n_codewords in ((few(truth, 2), None), (None, 6)):
        one = StarSHL(8, n_codewords=n_codewords, n_jobs=1, random_state=0).fit(X, labels)
        three = StarSHL(8, n_codewords=n_codewords, n_jobs=3, random_state=0).fit(X, labels)
        assert np.array_equal(one.dual_coef_, three.dual_coef_)
        assert one.training_codes_ == three.training_codes_


def test_no_cluster_loses_more_than_half_of_its_rows_to_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    guess = guess_clusters(RowsKernel(X), NeighborGraph.of_rows(X), 12, seed=0)
    assert np.bincount(guess.index, minlength=12).min() > 0
    assert np.allclose(guess.probabilities.sum(axis=1), 1.0)


def test_equal_rows_and_more_codewords_than_rows_are_taken():
    X = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]]), 10, axis=0)
    hasher = StarSHL(4, n_codewords=5, random_state=0).fit(X)
    assert len(hasher.classes_) == 5
    tiny = StarSHL(4, n_codewords=5, random_state=0).fit(X[[0, 10, 11]])
    assert tiny.transduction_[1] == tiny.transduction_[2]


def test_unknown_words_for_unlabeled_are_refused():
    with pytest.raises(ValueError, match="unlabeled"):
        StarSHL(4, unlabeled="neighbors").fit(np.eye(4), [0, 1, -1, -1])
