"""Which hasher and which length are chosen for users who name none, and what they are told about it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import HybridHasher
from starshl.evaluation import LengthComparison, MethodResult, compare
from starshl.evaluation.benchmark import hold_out
from starshl.evaluation.comparison import choose_length
from starshl.evaluation.hasher_choice import TrialResult, choose_hasher, prefer_clusters
from starshl.hashers.baselines import ITQ, LSHash, SignBinarizer


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900].astype(np.float32), y[:900]


def test_labels_choose_codes_of_the_class_and_the_neighbors(digits):
    X, y = digits
    few = np.where(np.arange(900) < 30, y, -1)
    for labels in (y, few):
        choice = choose_hasher(hold_out(X, labels, None, 0), None, None)
        assert (type(choice.hasher), choice.lengths) == (HybridHasher, (32,))
        assert choice.reason.startswith("HybridHasher was chosen, because rows have labels")


def test_without_labels_clusters_are_chosen_where_rows_have_clusters(digits):
    X, y = digits[0][:640], digits[1][:640]
    hidden = np.full(640, -1)
    split = hold_out(X, hidden, None, 0)
    choice = choose_hasher(split, None, 16)
    assert isinstance(choice.hasher, HybridHasher)
    assert choice.reason.startswith(
        "HybridHasher with clusters was chosen, because there are no labels to learn from, and on 57"
    )
    # The labels, which the choice did not see, agree with it.
    own, plain = (hasher.fit(split.items) for hasher in (choice.hasher, ITQ(16, random_state=0)))
    index = own.make_index(own.encode(split.items))
    found = index.search(own.encode_queries(split.queries), 10).ids
    by_itq = np.argsort(plain.encode(split.queries).distances(plain.encode(split.items)), axis=1, kind="stable")[:, :10]
    right = y[split.query][:, None]
    assert np.mean(y[split.base][found] == right) > np.mean(y[split.base][by_itq] == right)


@pytest.mark.parametrize(
    ("connected", "recall", "chosen", "reason"),
    [
        (0.93, 0.95, HybridHasher, "on 50 held-out rows it beats ITQ: 93% of the ten items"),
        (0.93, 0.88, HybridHasher, "88% of the nearest vectors are among its 100 nearest codes (ITQ: 90%)."),
        (0.99, 0.86, ITQ, "loses too many neighbors: only 86% of the nearest vectors"),
        (0.805, 0.95, ITQ, "gains too little to be sure: 80% of the ten items that HybridHasher finds share"),
    ],
)
def test_without_labels_the_figures_of_held_out_rows_decide(connected, recall, chosen, reason):
    plain, clustered = TrialResult(np.full(50, 0.8), 0.9), TrialResult(np.full(50, connected), recall)
    with_clusters, told = prefer_clusters(plain, clustered, 50)
    assert with_clusters is (chosen is HybridHasher)
    assert reason in told


@pytest.mark.parametrize(("gain", "is_better"), [(0.1, True), (0.03, False), (0.0, False)])
def test_a_gain_must_be_larger_than_chance(gain, is_better):
    # Four queries with gains of plus and minus .06 around their mean: a standard error of .035.
    plain = TrialResult(np.array([0.5, 0.5, 0.5, 0.5]), 0.9)
    other = TrialResult(plain.shares + gain + np.array([0.06, -0.06, 0.06, -0.06]), 0.9)
    assert other.is_better_connected(plain) is is_better


def test_few_rows_without_labels_get_itq(digits):
    choice = choose_hasher(hold_out(digits[0][:200], None, None, 0), None, [8, 16])
    assert (type(choice.hasher), choice.lengths) == (ITQ, (8, 16))
    assert choice.reason.endswith("there are no labels to learn from and too few rows to look for clusters.")


def test_a_hasher_that_was_named_is_used_at_its_own_length_or_at_those_named(digits):
    split = hold_out(*digits, None, 0)
    own = choose_hasher(split, LSHash(12), None)
    assert (own.lengths, own.reason) == ((12,), "LSHash was used, as asked for.")
    assert choose_hasher(split, SignBinarizer(), None).lengths == (64,)
    given = choose_hasher(split, LSHash(12), [8, 24])
    assert (given.lengths, given.hasher.n_bits) == ((8, 24), 8)


def test_default_lengths_shrink_to_what_rows_allow_and_named_ones_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    assert choose_hasher(hold_out(X, None, None, 0), None, None).lengths == (5,)
    assert choose_hasher(hold_out(X, y, None, 0), None, None).lengths == (7,)  # two bits for three classes
    with pytest.raises(ValueError, match=r"n_bits is 16.*5 directions"):
        compare(X, n_bits=16)
    with pytest.raises(ValueError, match=r"7 in all.*StarRidge"):
        compare(X, y, n_bits=[4, 8])


@pytest.mark.parametrize(
    ("n_bits", "message"),
    [([], "n_bits is an empty list"), ([8, 8], "names a length twice"), (0, "n_bits"), ([8, "x"], "n_bits")],
)
def test_lengths_that_make_no_sense_are_refused(digits, n_bits, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compare(*digits, n_bits=n_bits)


def length(n_bits, precision, recall):
    own = MethodResult("own", precision, precision, None, 0.5, recall, n_bits / 8, 9, 9000, 50 * n_bits, 1.0, 1.0, 1.0)
    return LengthComparison(n_bits, [own], "")


@pytest.mark.parametrize(
    ("lengths", "chosen"),
    [
        ([(64, 0.90, 0.95), (16, 0.90, 0.70), (32, 0.895, 0.85)], 32),
        ([(16, 0.85, 0.85), (32, 0.90, 0.90)], 32),  # .85 is not within .01 of .90
        ([(16, None, 0.81), (32, None, 0.90)], 16),
        ([(16, 0.9, 0.5), (32, 0.9, 0.6)], 32),  # none is good enough
        ([(16, 0.9, None), (32, 0.9, None)], 32),  # nothing to judge by
        ([(2, 0.9, 0.9), (32, 0.9, 0.9)], 32),  # 100 different codes are few for 2,000 items
    ],
)
def test_the_shortest_length_that_is_good_enough_is_chosen(lengths, chosen):
    n_bits, reason = choose_length([length(*one) for one in lengths], 2000)
    assert n_bits == chosen
    assert f"and {max(one[0] for one in lengths)} bits, {chosen} were chosen" in reason
    assert "too few items" not in reason


def test_few_items_do_not_prove_a_short_length():
    n_bits, reason = choose_length([length(16, 0.9, 0.9), length(32, 0.9, 0.9)], 500)
    assert n_bits == 32
    assert reason.endswith("32 were chosen: there are too few items to tell how much is lost.")


def test_one_length_needs_no_words():
    assert choose_length([length(16, 0.9, 0.9)], 2000) == (16, "")
