"""BoostSSC and parameter-sensitive hashing: stumps judged by pairs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers import Pairs, pairs_from_labels
from starshl.hashers.baselines import BoostSSC, ParamSensitiveHash
from starshl.hashers.baselines._stumps import best_stump, ranked_features, separated_by_cuts
from starshl.hashers.baselines.psh import candidate_stumps, stump_rates

HASHERS = [BoostSSC, ParamSensitiveHash]


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture
def made():
    """Forty rows of three features with many equal values, and signed weights on random pairs."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (40, 3)).astype(float)
    first, second = rng.integers(0, 40, (2, 150))
    return X, first, second, rng.standard_normal(150)


def test_separated_weight_of_every_cut_equals_brute_force(made):
    X, first, second, weights = made
    ranked = ranked_features(X, "raw", 1, None)
    for f, values in enumerate(ranked.values):
        sums = np.empty(len(values))
        separated_by_cuts(ranked.ranks[f], first, second, weights, sums)
        for cut in range(len(values) - 1):
            above = X[:, f] >= ranked.threshold(f, cut)
            assert sums[cut] == pytest.approx(weights[above[first] != above[second]].sum(), abs=1e-12)


def test_best_stump_is_the_best_of_all_and_skips_those_taken(made):
    X, first, second, weights = made
    ranked = ranked_features(X, "raw", 1, None)
    brute = {}
    for f in range(3):
        for cut in range(len(ranked.values[f]) - 1):
            above = X[:, f] >= ranked.threshold(f, cut)
            brute[f, cut] = weights[above[first] != above[second]].sum()
    taken = np.empty((0, 2), dtype=np.int64)
    for stump in sorted(brute, key=brute.get)[:4]:
        feature, cut, total = best_stump(ranked.ranks, ranked.n_values, first, second, weights, 0, 3, taken)
        assert (feature, cut) == stump
        assert total == pytest.approx(brute[stump])
        taken = np.vstack([taken, [feature, cut]])


def test_thresholds_lie_between_neighboring_values():
    ranked = ranked_features(np.array([[0.0], [4.0], [1.0]]), "raw", 1, None)
    assert [ranked.threshold(0, cut) for cut in (0, 1)] == [0.5, 2.5]
    assert ranked.n_stumps == 2


@pytest.mark.parametrize("kind", ["raw", "random", "pca"])
@pytest.mark.parametrize("hasher_class", HASHERS)
def test_each_bit_is_the_stump_it_reports(hasher_class, kind, digits):
    X, y = digits
    hasher = hasher_class(6, features=kind, n_projections=20, random_state=0).fit(X, y)
    values = X[:, hasher.features_] if kind == "raw" else X @ hasher.projections_.T
    assert np.array_equal(hasher.transform(X), np.where(values >= hasher.thresholds_, 1, -1))


def test_boosting_loss_never_rises_and_is_the_exponential_loss(digits):
    X, y = digits
    pairs = pairs_from_labels(y, 2000, random_state=0)
    hasher = BoostSSC(16).fit(X, pairs=pairs)
    codes = hasher.transform(X)
    votes = np.where(codes[pairs.first] == codes[pairs.second], 1.0, -1.0)
    margins = pairs.similarity[:, None] * np.cumsum(votes * hasher.bit_weights_, axis=1)
    assert np.allclose(hasher.objective_history_, np.exp(-margins).mean(axis=0))
    assert (np.diff(hasher.objective_history_) <= 1e-12).all()


def test_boosting_weight_minimizes_the_loss_of_its_round(digits):
    X, y = digits
    pairs = pairs_from_labels(y, 2000, random_state=0)
    hasher = BoostSSC(1).fit(X, pairs=pairs)
    bit = hasher.transform(X)[:, 0]
    votes = pairs.similarity * np.where(bit[pairs.first] == bit[pairs.second], 1.0, -1.0)
    losses = [np.exp(-alpha * votes).mean() for alpha in hasher.bit_weights_[0] + np.array([-0.01, 0, 0.01])]
    assert losses[1] == min(losses)


@pytest.mark.parametrize("hasher_class", HASHERS)
def test_the_feature_that_decides_similarity_is_found(hasher_class):
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 5))
    X[:, 3] = y + 0.01 * rng.standard_normal(200)
    hasher = hasher_class(1, random_state=0).fit(X, y)
    bit = hasher.transform(X)[:, 0] > 0
    if hasher_class is BoostSSC:
        assert hasher.features_[0] == 3
        assert hasher.bit_weights_[0] == 10.0
        assert np.array_equal(bit, y == 1)
    # One of the five candidates of parameter-sensitive hashing: the best of each feature.
    else:
        assert hasher.n_candidates_ == 5


def test_boosting_takes_no_stump_twice_unless_told(digits):
    X, y = digits[0][:, 20:22], digits[1]
    unique, repeated = (BoostSSC(8, unique=word, random_state=0).fit(X, y) for word in (True, False))
    assert len(set(zip(unique.features_, unique.thresholds_, strict=True))) == 8
    assert len(set(zip(repeated.features_, repeated.thresholds_, strict=True))) < 8


def test_stump_rates_equal_brute_force(made):
    X, first, second, weights = made
    pairs = Pairs(first, second, np.where(weights > 0, 1, -1).astype(np.int8))
    ranked = ranked_features(X, "raw", 1, None)
    stumps, kept, collided = stump_rates(ranked, pairs)
    assert len(stumps) == ranked.n_stumps
    for (feature, cut), similar, dissimilar in zip(stumps, kept, collided, strict=True):
        above = X[:, feature] >= ranked.threshold(feature, cut)
        agree = above[first] == above[second]
        assert similar == pytest.approx(agree[weights > 0].mean())
        assert dissimilar == pytest.approx(agree[weights < 0].mean())


def test_candidates_are_the_best_of_each_feature():
    features = np.array([0, 0, 0, 1, 1, 2])
    missing = np.array([0.3, 0.0, 0.1, 0.5, 0.2, 0.9])
    none = np.zeros(6)
    assert candidate_stumps(features, missing, none, 2).tolist() == [1, 4]
    assert candidate_stumps(features, missing, none, 3).tolist() == [1, 4, 5]
    assert candidate_stumps(features, missing, none, 4).tolist() == [1, 2, 3, 4]
    assert candidate_stumps(features, missing, none, 9).tolist() == [0, 1, 2, 3, 4, 5]


def test_candidates_meet_the_shares_asked_for(digits):
    X, y = digits
    pairs = pairs_from_labels(y, 4000, random_state=0)
    hasher = ParamSensitiveHash(8, together=0.6, collide=0.8, random_state=0).fit(X, pairs=pairs)
    codes = hasher.transform(X)
    agree = codes[pairs.first] == codes[pairs.second]
    slack = hasher.relaxation_ + 1e-12
    assert (agree[pairs.similarity > 0].mean(axis=0) >= 0.6 - slack).all()
    assert (agree[pairs.similarity < 0].mean(axis=0) <= 0.8 + slack).all()
    assert hasher.n_candidates_ >= 40


@pytest.mark.parametrize("hasher_class", HASHERS)
def test_monotone_change_of_a_feature_keeps_the_codes(hasher_class, digits):
    X, y = digits
    before, after = (hasher_class(8, random_state=0).fit_transform(rows, y) for rows in (X, X**3 + X))
    assert np.array_equal(before, after)


@pytest.mark.parametrize("hasher_class", HASHERS)
def test_one_kind_of_pairs_is_refused(hasher_class, digits):
    with pytest.raises(ValueError, match="pairs holds only dissimilar pairs"):
        hasher_class(3).fit(digits[0], pairs=([0, 1], [2, 3], [-1, -1]))


@pytest.mark.parametrize("hasher_class", HASHERS)
def test_too_many_bits_name_the_largest_number(hasher_class):
    X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="at most 2 bits"):
        hasher_class(3).fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("hasher_class", HASHERS)
def test_bad_settings_are_refused(hasher_class, digits):
    with pytest.raises(ValueError, match="features is 'x'"):
        hasher_class(4, features="x").fit(*digits)
    with pytest.raises(ValueError, match="needs no labels"):
        hasher_class(4).fit(digits[0])
