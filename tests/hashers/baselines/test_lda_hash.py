"""LDAHash and DIF: directions, thresholds and their invariances."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers.baselines import LDAHash
from starshl.hashers.baselines._stumps import separated_weights
from starshl.hashers.baselines.lda_hash import best_threshold


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def brute_errors(first, second, similarity, threshold):
    torn = (first >= threshold) != (second >= threshold)
    return torn[similarity > 0].mean() + 1 - torn[similarity < 0].mean()


def test_separated_weights_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    # Integer values make ties between pairs and within them.
    first, second = rng.integers(0, 12, (2, 60)).astype(float)
    weights = rng.standard_normal(60)
    thresholds, sums = separated_weights(first, second, weights)
    values = np.unique(np.concatenate([first, second]))
    assert np.array_equal(thresholds, (values[1:] + values[:-1]) / 2)
    for threshold, total in zip(thresholds, sums, strict=True):
        torn = (first >= threshold) != (second >= threshold)
        assert total == pytest.approx(weights[torn].sum(), abs=1e-12)


def test_separated_weights_tell_neighboring_floats_apart():
    above = np.nextafter(1.0, 2.0)
    (threshold,), (total,) = separated_weights(np.array([1.0]), np.array([above]), np.array([3.0]))
    assert total == 3.0
    assert 1.0 < threshold <= above


def test_best_threshold_is_the_exhaustive_minimizer():
    rng = np.random.default_rng(1)
    similarity = np.where(rng.random(80) < 0.6, 1, -1)
    first = rng.standard_normal(80)
    second = first + np.where(similarity > 0, 0.2, 2.0) * rng.standard_normal(80)
    found = best_threshold(first, second, similarity)
    values = np.sort(np.concatenate([first, second]))
    candidates = (values[1:] + values[:-1]) / 2
    best = min(brute_errors(first, second, similarity, t) for t in candidates)
    assert brute_errors(first, second, similarity, found) == pytest.approx(best)


def test_threshold_of_a_constant_projection_is_its_value():
    assert best_threshold(np.ones(4), np.ones(4), np.array([1, 1, -1, -1])) == 1.0


def test_lda_directions_solve_the_generalized_eigenproblem(digits):
    X, y = digits
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, len(X), (2, 3000))
    keep = first != second
    pairs = (first[keep], second[keep], np.where(y[first] == y[second], 1, -1)[keep])
    hasher = LDAHash(5, n_components=20, regularization=0.0).fit(X, pairs=pairs)
    differences = X[pairs[0]] - X[pairs[1]]
    spread = differences @ hasher.components_.T
    ratios = np.square(spread[pairs[2] > 0]).mean(axis=0) / np.square(spread[pairs[2] < 0]).mean(axis=0)
    assert np.allclose(ratios, hasher.eigenvalues_)
    assert (np.diff(hasher.eigenvalues_) >= 0).all()
    cross = spread[pairs[2] < 0].T @ spread[pairs[2] < 0]
    assert np.allclose(cross, np.diag(np.diag(cross)), atol=1e-8 * cross.max())


def test_dif_directions_minimize_the_difference_of_spreads(digits):
    X, y = digits
    hasher = LDAHash(3, variant="dif", alpha=2.0, random_state=0).fit(X, y)
    assert np.allclose(hasher.components_ @ hasher.components_.T, np.eye(3))
    first, second = np.random.default_rng(3).integers(0, len(X), (2, 200_000))
    squared = np.square((X[first] - X[second]) @ hasher.components_.T)
    same = (y[first] == y[second]) & (first != second)
    value = 2 * squared[same].mean(axis=0) - squared[y[first] != y[second]].mean(axis=0)
    # The two samples of pairs are independent; 40,000 pairs leave a few percent between them.
    assert np.allclose(value, hasher.eigenvalues_, rtol=0.1)


def test_lda_eigenvalues_are_ratios(digits):
    values = LDAHash(16, random_state=0).fit(*digits).eigenvalues_
    assert values[0] > 0
    assert values[-1] < 1.2


def test_lda_codes_survive_an_invertible_map_of_the_features():
    rng = np.random.default_rng(4)
    y = np.arange(300) % 4
    X = rng.standard_normal((300, 6)) + 2 * rng.standard_normal((4, 6))[y]
    change = rng.standard_normal((6, 6))
    before, after = (LDAHash(4, regularization=0.0, random_state=0).fit_transform(rows, y) for rows in (X, X @ change))
    agreement = (before == after).mean(axis=0)
    # A bit may come back negated, since eigenvectors have no sign.
    assert np.maximum(agreement, 1 - agreement).min() == 1.0


@pytest.mark.parametrize("threshold", ["learned", "median", "zero"])
def test_thresholds_cut_where_they_say(threshold, digits):
    X, y = digits
    hasher = LDAHash(6, threshold=threshold, random_state=0).fit(X, y)
    share = (hasher.transform(X) > 0).mean(axis=0)
    if threshold == "median":
        assert np.allclose(share, 0.5, atol=0.01)
    if threshold == "zero":
        assert np.allclose(hasher.decision_function(X).mean(axis=0), 0, atol=1e-8)


def test_learned_thresholds_err_least(digits):
    errors = [
        LDAHash(6, threshold=word, random_state=0).fit(*digits).pair_errors_ for word in ("learned", "median", "zero")
    ]
    assert (errors[0] <= errors[1] + 1e-12).all()
    assert (errors[0] <= errors[2] + 1e-12).all()


def test_pairs_stand_in_for_labels(digits):
    X = digits[0][:50]
    pairs = (np.arange(20), np.arange(20, 40), np.tile([1, -1], 10))
    plain, poisoned = (LDAHash(3).fit(X, y, pairs=pairs) for y in (None, np.full(50, np.nan)))
    assert np.array_equal(plain.components_, poisoned.components_)


def test_one_kind_of_pairs_is_refused(digits):
    with pytest.raises(ValueError, match="pairs holds only similar pairs"):
        LDAHash(3).fit(digits[0], pairs=([0, 1], [2, 3], [1, 1]))


def test_too_many_bits_name_the_largest_number(digits):
    with pytest.raises(ValueError, match=r"n_bits is 64; .* at most 61 bits"):
        LDAHash(64).fit(*digits)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="needs no labels"):
        LDAHash(4).fit(digits[0])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"variant": "pca"}, "variant is 'pca'"),
        ({"alpha": 0}, "alpha is 0"),
        ({"regularization": -1}, "regularization is -1"),
    ],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        LDAHash(4, **params).fit(*digits)
