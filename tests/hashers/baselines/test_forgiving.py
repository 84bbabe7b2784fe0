"""Forgiving hash: labelings, boosting, relabeling and the selection of bits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from starshl.hashers.baselines import ForgivingHash
from starshl.hashers.baselines._forgiving_loops import boost_bit, relabel_groups, vote
from starshl.hashers.baselines._stumps import ranked_features
from starshl.hashers.baselines.forgiving import balanced_labelings, group_agreement, select_bits

QUICK = {"max_iter": 20, "pool": 2, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def boost(X, groups, labels, max_iter=20, relabel_every=1000):
    ranked = ranked_features(X, "raw", 1, None)
    features, cuts = np.zeros((2, max_iter), dtype=np.int64)
    votes, losses = np.zeros((2, max_iter))
    labels = labels.astype(float)
    boost_bit(ranked.ranks, ranked.n_values, groups, labels, max_iter, relabel_every, features, cuts, votes, losses)
    thresholds = np.array([ranked.threshold(*stump) for stump in zip(features, cuts, strict=True)])
    return features, thresholds, votes, losses, labels


def scores_of(X, features, thresholds, votes):
    return (np.where(X[:, features] >= thresholds, 1.0, -1.0) * votes).sum(axis=1)


@pytest.mark.parametrize("n_groups", [2, 3, 6, 7, 40])
def test_labelings_put_half_of_the_groups_on_each_side(n_groups):
    found = balanced_labelings(n_groups, 30, np.random.RandomState(0))
    assert found.shape == (30, n_groups)
    assert ((found == 1).sum(axis=1) == n_groups // 2).all()


@pytest.mark.parametrize(("n_groups", "n_distinct"), [(6, 10), (5, 10), (2, 1)])
def test_no_labeling_comes_twice_before_all_have_come_once(n_groups, n_distinct):
    found = balanced_labelings(n_groups, 2 * n_distinct, np.random.RandomState(1))
    unsigned = found * found[:, :1] if n_groups % 2 == 0 else found
    for half in (unsigned[:n_distinct], unsigned[n_distinct:]):
        assert len(np.unique(half, axis=0)) == n_distinct


def test_relabeling_gives_plus_to_the_upper_half():
    scores = np.array([3.0, 5.0, -1.0, -1.0, 0.5, 0.0])
    groups = np.array([0, 0, 1, 1, 2, 3])
    labels = np.array([-1.0, 1.0, 1.0, -1.0])
    assert relabel_groups(scores, groups, labels)
    assert labels.tolist() == [1, -1, 1, -1]
    assert not relabel_groups(scores, groups, labels)


def test_first_stump_is_the_one_of_least_error():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    groups = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    features, thresholds, votes, *_ = boost(X, groups, np.array([-1, 1]), max_iter=1)
    errors = [np.mean((X[:, f] >= t) != groups) for f in range(2) for t in X[:, f]]
    found = np.mean(((X[:, features[0]] >= thresholds[0]) == (votes[0] > 0)) != groups)
    assert found == pytest.approx(min(errors + [1 - error for error in errors]))


def test_loss_is_the_exponential_loss_and_falls_each_round(digits):
    X, y = digits
    labels = np.where(np.arange(10) < 5, 1, -1)
    features, thresholds, votes, losses, _ = boost(X, y, labels)
    margins = labels[y] * scores_of(X, features, thresholds, votes)
    assert losses[-1] == pytest.approx(np.exp(-margins).mean())
    assert (np.diff(losses) < 0).all()


def test_each_stump_weight_minimizes_its_loss(digits):
    X, y = digits
    labels = np.where(np.arange(10) % 2 == 0, 1, -1)
    features, thresholds, votes, *_ = boost(X, y, labels, max_iter=3)

    def loss(last):
        return np.exp(-labels[y] * scores_of(X, features, thresholds, np.r_[votes[:2], last])).mean()

    assert loss(votes[2]) <= min(loss(votes[2] - 0.01), loss(votes[2] + 0.01))


def test_relabeling_lets_an_entangled_group_change_sides():
    # Groups 0 and 1 fill the same place, 2 and 3 another: the labeling that splits both pairs is hopeless.
    rng = np.random.default_rng(1)
    groups = np.arange(200) % 4
    X = rng.standard_normal((200, 2)) * 0.3 + np.where(groups < 2, 0.0, 5.0)[:, None]
    *_, labels = boost(X, groups, np.array([1, -1, 1, -1]), max_iter=40, relabel_every=5)
    assert labels[0] == labels[1] != labels[2] == labels[3]


def test_votes_are_summed_as_written_out():
    rng = np.random.default_rng(2)
    X, thresholds, votes = rng.standard_normal((20, 4)), rng.standard_normal((3, 5)), rng.random((3, 5))
    features = rng.integers(0, 4, (3, 5))
    scores = np.empty((20, 3))
    vote(X, features, thresholds, votes, scores)
    for b in range(3):
        assert np.allclose(scores[:, b], scores_of(X, features[b], thresholds[b], votes[b]))


def test_agreement_of_a_worked_example():
    groups = np.array([0, 0, 1, 1])
    bits = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype=bool)
    assert group_agreement(bits, groups).tolist() == [1, 0, 1]


def test_selection_prefers_agreeing_bits_that_differ():
    groups = np.repeat([0, 1, 2, 3], 2)
    halves = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=bool)
    bits = np.repeat(halves, 2, axis=1).T
    chosen, _ = select_bits(bits, groups, 2, 0.5)
    # Not the copy (1) and not the constant bit (3), though both agree perfectly.
    assert chosen.tolist() == [0, 2]


def test_selected_bits_are_less_alike_than_the_pool():
    X, y = make_blobs(400, n_features=6, centers=8, random_state=3)
    pool = ForgivingHash(24, max_iter=10, pool=1, diversity=0.0, random_state=0).fit(X, y).transform(X) > 0

    def likeness(bits):
        corr = np.abs(np.corrcoef(bits.T))
        return corr[np.triu_indices(len(corr), 1)].mean()

    chosen, _ = select_bits(pool, y, 6, 0.5)
    assert likeness(pool[:, chosen]) < likeness(pool)


def test_groups_keep_together_on_separable_blobs():
    X, y = make_blobs(300, n_features=5, centers=6, random_state=4)
    hasher = ForgivingHash(8, **QUICK).fit(X, y)
    assert (hasher.agreement_ > 0.75).all()
    assert ((hasher.labelings_ == 1).sum(axis=1) == 3).all()


def test_unlabeled_rows_change_nothing(digits):
    X, y = digits[0][:400], digits[1][:400]
    partial = np.r_[y, np.full(100, -1)]
    with_more = np.vstack([X, digits[0][1000:1100]])
    first = ForgivingHash(4, **QUICK).fit(X, y).decision_function(X)
    assert np.array_equal(ForgivingHash(4, **QUICK).fit(with_more, partial).decision_function(X), first)


def test_constant_features_are_hashed():
    codes = ForgivingHash(4, **QUICK).fit(np.ones((10, 3)), np.arange(10) % 2).transform(np.ones((2, 3)))
    assert (codes == 1).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [({"max_iter": 0}, "max_iter is 0"), ({"pool": 0}, "pool is 0"), ({"diversity": -1}, "diversity is -1")],
)
def test_bad_settings_are_refused(params, message, digits):
    with pytest.raises(ValueError, match=message):
        ForgivingHash(4, **params).fit(*digits)


def test_missing_labels_point_to_methods_that_need_none(digits):
    with pytest.raises(ValueError, match="needs no labels"):
        ForgivingHash(4).fit(digits[0])
