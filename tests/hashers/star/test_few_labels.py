"""StarRidge with few labels: what unlabeled rows add, what they never cost, and every kind of sample."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.datasets import load_digits, make_blobs

import starshl
from starshl import NeighborGraph, StarRidge, StarSHL, model_card, spread_labels
from starshl._common.labels import check_labels
from starshl.hashers.star.ridge_targets import row_targets
from starshl.hashers.star.samples import Vectors
from starshl.learning.kernels import SpectrumKernel


def draw(y, per_class, seed=0):
    rng = np.random.default_rng(seed)
    partial = np.full(len(y), -1)
    for label in np.unique(y):
        partial[rng.permutation(np.flatnonzero(y == label))[:per_class]] = label
    return partial


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500], y[:500], X[500:800], y[500:800]


@pytest.fixture(scope="module")
def fitted(digits):
    X, y, _, _ = digits
    partial = draw(y, 4)
    return partial, *(StarRidge(16, unlabeled=word, random_state=0).fit(X, partial) for word in ("graph", "ignore"))


def precision_at_10(hasher, X, y, queries, labels):
    """Share of the 10 nearest items with the query's label, ties in expectation."""
    items, codes = hasher.training_codes_.to_signs().astype(int), hasher.encode(queries).to_signs().astype(int)
    shares = []
    for row, label in zip((codes.shape[1] - codes @ items.T) // 2, labels, strict=True):
        last = np.partition(row, 9)[9]
        nearer, tied, right = row < last, row == last, y == label
        shares.append((right[nearer].sum() + (10 - nearer.sum()) * right[tied].mean()) / 10)
    return np.mean(shares)


def test_unlabeled_rows_help_on_rows_seen_and_unseen(digits, fitted):
    X, y, queries, labels = digits
    partial, graph, ignoring = fitted
    rest = partial < 0
    assert np.mean(graph.transduction_[rest] == y[rest]) > np.mean(ignoring.transduction_[rest] == y[rest]) + 0.03
    assert graph.score(queries, labels) > ignoring.score(queries, labels) + 0.03
    better, worse = (precision_at_10(hasher, X, y, queries, labels) for hasher in (graph, ignoring))
    assert better > worse + 0.03


def test_the_choice_says_what_was_done_with_unlabeled_rows(fitted):
    _, graph, ignoring = fitted
    assert "spread 40 labels to 460 rows" in graph.choice_
    assert "weighed by 40 labels, each left out in turn" in graph.choice_
    assert "460 unlabeled rows were left out" in ignoring.choice_


def test_given_labels_are_kept_and_coded_by_their_codewords(fitted):
    partial, graph, _ = fitted
    given = partial >= 0
    assert np.array_equal(graph.transduction_[given], partial[given])
    index = np.searchsorted(graph.classes_, partial[given])
    assert np.array_equal(graph.training_codes_.to_signs()[given], graph.codewords_[index])


def test_unlabeled_rows_are_as_likely_as_a_fit_without_them_and_the_blend_say_together(digits, fitted):
    """Log odds are the mean of both, up to one factor that makes all rows as sure as the blend is."""
    X, _, _, _ = digits
    partial, graph, _ = fitted
    labels, weights = check_labels(partial, len(X)), np.ones(len(X))
    targets = row_targets(Vectors(X), graph.kernels_, labels, weights, graph._settings(), None, None, 0)
    kernel = sum(weight * kernel(X, X) for weight, kernel in zip(graph.kernel_weights_, graph.kernels_, strict=True))
    # The constant is in the intercept: constant * (sum of the dual coefficients).
    constant = np.median(graph.intercept_ / graph.dual_coef_.sum(axis=1))
    kernel = kernel + constant
    factors = []
    for out in np.flatnonzero(partial < 0)[:3]:
        rest = np.delete(np.arange(len(X)), out)
        # Distrust of spread labels is measured from a ridge of .1, however small that of given labels is.
        ridge = np.where(partial[rest] < 0, max(graph.ridge_, 0.1), graph.ridge_) * targets.ridge_scale[rest]
        dual = np.linalg.solve(kernel[np.ix_(rest, rest)] + np.diag(ridge), np.eye(10)[targets.index[rest]])
        bent = np.arcsinh(3 * kernel[out, rest] @ dual) / 3
        both = 0.5 * log_odds(softmax(graph.temperature_ * bent)) + 0.5 * log_odds(targets.spread.probabilities[out])
        told = log_odds(graph.training_proba()[out])
        factors.append(told[both.argmax()] / both.max())
        np.testing.assert_allclose(told, factors[0] * both, atol=0.02)
    np.testing.assert_allclose(factors, factors[0], rtol=1e-3)
    rest = partial < 0
    sure = graph.training_proba()[rest].max(axis=1).mean()
    assert sure == pytest.approx(targets.spread.confidences[rest].mean(), abs=1e-3)


def log_odds(probabilities):
    logs = np.log(np.maximum(probabilities, 1e-6))
    return logs - logs.mean()


def test_a_graph_computed_before_gives_the_same_hasher(digits, fitted):
    X, _, queries, _ = digits
    partial, graph, _ = fitted
    again = StarRidge(16, random_state=0).fit(X, partial, graph=NeighborGraph.of_rows(X))
    assert np.array_equal(graph.dual_coef_, again.dual_coef_)
    assert np.array_equal(graph.encode(queries).packed, again.encode(queries).packed)


def test_threads_do_not_change_a_bit(digits, fitted):
    X, _, _, _ = digits
    partial, graph, _ = fitted
    threaded = StarRidge(16, n_jobs=3, random_state=0).fit(X, partial)
    assert graph.dual_coef_.tobytes() == threaded.dual_coef_.tobytes()
    assert graph.temperature_ == threaded.temperature_


def test_a_saved_hasher_needs_no_graph(digits, fitted, tmp_path):
    _, _, queries, _ = digits
    _, graph, _ = fitted
    graph.save(tmp_path / "hasher")
    loaded = starshl.load(tmp_path / "hasher")
    assert np.array_equal(graph.encode(queries).packed, loaded.encode(queries).packed)
    assert np.array_equal(graph.training_codes_.packed, loaded.training_codes_.packed)


def test_sparse_rows_and_precomputed_kernels_learn_from_unlabeled_rows(digits):
    X, y, _, _ = digits
    partial = draw(y, 4)
    rest = partial < 0
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    kernel = np.exp(-squared / (2 * 0.25 * np.median(squared)))
    for hasher, samples in (
        (StarRidge(16, random_state=0), csr_array(X)),
        (StarRidge(16, kernels="precomputed", random_state=0), kernel),
    ):
        assert np.mean(hasher.fit(samples, partial).transduction_[rest] == y[rest]) > 0.9


def test_strings_learn_from_unlabeled_strings():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list(letters), 12)) for letters in ("abcd", "wxyz") for _ in range(30)]
    partial = np.full(60, -1)
    partial[[0, 1, 30, 31]] = 0, 0, 1, 1
    hasher = StarRidge(8, kernels=[SpectrumKernel(2)], random_state=0).fit(words, partial)
    assert np.mean(hasher.transduction_ == np.repeat([0, 1], 30)) > 0.95


def test_rows_of_weight_zero_are_absent(digits):
    X, y, queries, _ = digits
    partial, weights = draw(y, 4), np.ones(500)
    weights[partial < 0] = np.where(np.arange(460) % 2, 1.0, 0.0)
    kept = weights > 0
    with_zeros = StarRidge(16, random_state=0).fit(X, partial, sample_weight=weights)
    without = StarRidge(16, random_state=0).fit(X[kept], partial[kept])
    assert np.allclose(with_zeros.class_scores(queries), without.class_scores(queries), atol=1e-6)


def test_a_given_label_is_kept_though_all_rows_of_its_class_have_weight_zero(digits):
    X, y, _, _ = digits
    partial = draw(y, 4)
    hasher = StarRidge(16, random_state=0).fit(X, partial, sample_weight=np.where(partial == 3, 0.0, 1.0))
    assert 3 not in hasher.classes_
    assert np.array_equal(hasher.transduction_[partial >= 0], partial[partial >= 0])
    assert not hasher.labeled_[partial == 3].any()


def test_a_graph_that_adds_nothing_to_the_labels_does_no_harm():
    """A class per corner of a grid of narrow stripes: neighbors are alike in the wrong, wide coordinate."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = np.column_stack([y + 0.1 * rng.standard_normal(240), 12 * rng.standard_normal((240, 2))])
    partial = np.where(np.arange(240) < 150, y, -1)
    hasher = StarRidge(16, random_state=0).fit(X, partial)
    alone = StarRidge(16, unlabeled="ignore", random_state=0).fit(X, partial)
    right, alone_right = (np.mean(each.transduction_[150:] == y[150:]) for each in (hasher, alone))
    assert right >= alone_right - 0.05


def test_one_label_per_class_is_enough_to_fit(digits):
    X, y, _, _ = digits
    partial = draw(y, 1)
    hasher = StarRidge(16, random_state=0).fit(X, partial)
    assert np.mean(hasher.transduction_ == y) > 0.75  # one label per class alone: 0.68


@pytest.mark.parametrize("labels_per_class", [None, 2, 20])
def test_an_array_as_graph_is_refused(digits, labels_per_class):
    X, y, _, _ = digits
    partial = None if labels_per_class is None else draw(y, labels_per_class)
    with pytest.raises(TypeError, match="graph is a ndarray"):
        StarRidge(16).fit(X, partial, graph=X)


def test_a_graph_of_other_rows_is_refused(digits):
    X, y, _, _ = digits
    with pytest.raises(ValueError, match=r"has 100 rows.*has 500"):
        StarRidge(16).fit(X, draw(y, 2), graph=NeighborGraph.of_rows(X[:100]))


def test_accuracy_is_that_of_given_labels_which_the_others_find_and_not_of_guesses():
    """Labels at random are found by chance, however well the fit repeats what was spread from them."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    hasher = StarRidge(16, random_state=0).fit(X, np.where(np.arange(300) < 90, y, -1))
    assert hasher.leave_one_out()["accuracy"] < 0.5
    digits, classes = load_digits(n_class=5, return_X_y=True)
    partial = draw(classes, 6)
    hasher = StarRidge(16, random_state=0).fit(digits, partial)
    found = hasher.leave_one_out()["accuracy"]
    assert abs(found - np.mean(hasher.transduction_[partial < 0] == classes[partial < 0])) < 0.1
    assert f"accuracy {found:.3f} on 30 given labels, each left out" in hasher.choice_


def test_few_labels_are_said_to_be_too_few_to_tell_how_right_probabilities_are(digits):
    X, y, _, _ = digits
    one, four = (StarRidge(16, random_state=0).fit(X, draw(y, n)) for n in (1, 4))
    assert "too few labels to say how many others are right" in one.choice_
    assert one.leave_one_out() is None
    assert not one.fit_summary.knows_probabilities
    assert four.fit_summary.knows_probabilities
    limit = "Too few labels were given to tell how right probabilities are."
    assert limit in model_card(one)["limits"]
    assert limit not in model_card(four)["limits"]


@pytest.mark.parametrize("method", [StarRidge, StarSHL])
def test_labels_of_one_class_are_not_spread_and_the_last_fit_stays(digits, method):
    X, y, queries, _ = digits
    hasher = method(8, random_state=0).fit(X[:60], y[:60])
    before = hasher.encode(queries)
    with pytest.raises(ValueError, match="another class"):
        hasher.fit(X[:60], np.where(np.arange(60) < 3, 7, -1))
    assert hasher.encode(queries) == before


def test_labels_that_were_spread_before_need_not_be_spread_again():
    X, y = make_blobs([500, 50], 2, centers=[[0, 0], [2.8, 0]], random_state=0)
    partial = np.full(550, -1)
    partial[[0, 1, 2, 500, 501, 502]] = [0, 0, 0, 1, 1, 1]
    known = spread_labels(X, partial, class_shares={0: 10, 1: 1})
    blind, informed = (StarRidge(16, random_state=0).fit(X, partial, spread=each) for each in (None, known))
    assert np.mean(informed.transduction_ == y) > np.mean(blind.transduction_ == y) + 0.02
    assert np.mean(informed.transduction_ == known.labels) > 0.97
    other = partial.copy()
    other[:2] = 1
    with pytest.raises(ValueError, match="2 rows of y had another label"):
        StarRidge(16).fit(X, other, spread=known)
    with pytest.raises(ValueError, match="550 rows of the classes"):
        StarRidge(16).fit(X[:502], partial[:502], spread=known)
