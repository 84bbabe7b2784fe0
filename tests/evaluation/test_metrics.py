"""Retrieval metrics against enumeration over all orders of ties, closed forms and laws."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starshl import BinaryCodes
from starshl.evaluation import (
    HammingHistograms,
    average_precision,
    expected_precision,
    hamming_histograms,
    list_size,
    lookup,
    mean_average_precision,
    pr_area,
    precision_at,
    precision_recall,
)

BY_HAND = HammingHistograms([[1, 3, 2]], [[1, 1, 1]])


def random_case(seed, n_queries=23, n_items=90, n_bits=12, n_classes=3):
    rng = np.random.default_rng(seed)
    codes = BinaryCodes.from_signs(rng.choice([-1, 1], (n_queries + n_items, n_bits)))
    y = rng.integers(0, n_classes, n_queries + n_items)
    return codes[:n_queries], codes[n_queries:], y[:n_queries], y[n_queries:]


def tie_orders(count, relevant):
    """All rankings (as tuples of 0/1 relevance) that respect the distances of one query."""
    buckets = [(1,) * hit + (0,) * (n - hit) for n, hit in zip(count, relevant, strict=True)]
    for parts in product(*(permutations(bucket) for bucket in buckets)):
        yield np.array([item for part in parts for item in part])


def ap_of_ranking(ranking, k=None):
    k = len(ranking) if k is None else k
    precision = ranking.cumsum() / np.arange(1, len(ranking) + 1)
    return (precision * ranking)[:k].sum() / min(ranking.sum(), k)


small_histograms = st.lists(
    st.integers(0, 3).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=4
).filter(lambda buckets: sum(n for n, _ in buckets) > 0)


@settings(max_examples=60, deadline=None)
@given(small_histograms, st.integers(1, 12))
def test_expected_metrics_are_the_mean_over_all_orders_of_ties(buckets, s):
    count, relevant = (list(column) for column in zip(*buckets, strict=True))
    histograms = HammingHistograms([count], [relevant])
    rankings = list(tie_orders(count, relevant))
    precisions = [ranking[:s].mean() for ranking in rankings]
    assert expected_precision(histograms, s)[0] == pytest.approx(np.mean(precisions), abs=1e-12)
    found, found_at_s = average_precision(histograms)[0], average_precision(histograms, s)[0]
    if sum(relevant):
        assert found == pytest.approx(np.mean([ap_of_ranking(r) for r in rankings]), abs=1e-12)
        assert found_at_s == pytest.approx(np.mean([ap_of_ranking(r, s) for r in rankings]), abs=1e-12)
    else:
        assert np.isnan(found)
        assert np.isnan(found_at_s)


def test_example_by_hand_lies_between_the_best_and_the_worst_order():
    assert expected_precision(BY_HAND, 3)[0] == pytest.approx(5 / 9)
    assert average_precision(BY_HAND)[0] == pytest.approx(0.757407, abs=5e-7)
    by_order = [ap_of_ranking(ranking) for ranking in tie_orders((1, 3, 2), (1, 1, 1))]
    assert (min(by_order), max(by_order)) == (pytest.approx(2 / 3, abs=5e-5), pytest.approx(0.8667, abs=5e-5))


def test_list_size_counts_the_items_within_the_last_radius_used():
    assert list_size(BY_HAND, [1, 2, 4, 5, 99]).tolist() == [[1, 4, 4, 6, 6]]
    assert list_size(BY_HAND, 2).tolist() == [4]


@pytest.mark.parametrize("n_bits", [1, 7, 8, 12, 63, 64, 65, 130])
def test_histograms_count_what_all_distances_say(n_bits):
    queries, items, y_query, y_db = random_case(n_bits, n_bits=n_bits)
    found = hamming_histograms(queries, items, y_query, y_db)
    distances = queries.distances(items)
    same = y_query[:, None] == y_db[None, :]
    for r in range(n_bits + 1):
        assert np.array_equal(found.count[:, r], (distances == r).sum(axis=1))
        assert np.array_equal(found.relevant[:, r], ((distances == r) & same).sum(axis=1))
    assert (found.n_queries, found.n_items, found.n_bits) == (len(queries), len(items), n_bits)


@pytest.mark.parametrize("n_bits", [2, 64, 70])
def test_equal_codes_of_items_and_queries_count_one_by_one(n_bits):
    rng = np.random.default_rng(4)
    few = BinaryCodes.from_signs(rng.choice([-1, 1], (6, n_bits)))
    queries, items = few[rng.integers(0, 6, 150)], few[rng.integers(0, 5, 331)]
    y_query, y_items = rng.integers(0, 4, 150), rng.integers(1, 6, 331)  # class 0 has no item, class 5 no query
    histograms = hamming_histograms(queries, items, y_query, y_items)
    distances, same = queries.distances(items), y_query[:, None] == y_items
    for r in range(n_bits + 1):
        assert np.array_equal(histograms.count[:, r], (distances == r).sum(axis=1))
        assert np.array_equal(histograms.relevant[:, r], ((distances == r) & same).sum(axis=1))


@pytest.mark.parametrize("n_classes", [3, 70])
def test_label_matrices_make_items_relevant_that_share_a_label(n_classes):
    queries, items, _, _ = random_case(5)
    rng = np.random.default_rng(6)
    y_query, y_db = ((rng.random((len(codes), n_classes)) < 0.1).astype(int) for codes in (queries, items))
    found = hamming_histograms(queries, items, y_query, y_db)
    assert np.array_equal(found.n_relevant, (y_query @ y_db.T > 0).sum(axis=1))


def test_histograms_are_the_same_for_any_number_of_threads():
    case = random_case(1, n_queries=300, n_items=5000, n_bits=24)
    one, three = hamming_histograms(*case, n_jobs=1), hamming_histograms(*case, n_jobs=3)
    assert np.array_equal(one.count, three.count)
    assert np.array_equal(one.relevant, three.relevant)


def test_storage_order_changes_no_expected_metric_and_does_change_the_stable_sort():
    queries, items, y_query, y_db = random_case(2, n_bits=3)
    by_class = np.argsort(y_db, kind="stable")
    shuffled, sorted_y = items[by_class], y_db[by_class]
    assert precision_at(queries, items, y_query, y_db) == precision_at(queries, shuffled, y_query, sorted_y)
    assert mean_average_precision(queries, items, y_query, y_db) == mean_average_precision(
        queries, shuffled, y_query, sorted_y
    )
    plain, of_sorted = (
        precision_at(queries, codes, y_query, y, ties="index") for codes, y in ((items, y_db), (shuffled, sorted_y))
    )
    assert plain != of_sorted


@pytest.mark.parametrize("s", [1, 10, 89, 90, 200])
def test_index_ties_are_those_of_a_stable_sort(s):
    queries, items, y_query, y_db = random_case(3, n_bits=4)
    order = np.argsort(queries.distances(items), axis=1, kind="stable")[:, :s]
    expected = (y_db[order] == y_query[:, None]).mean()
    assert precision_at(queries, items, y_query, y_db, s, ties="index") == pytest.approx(expected)


def test_permuted_and_flipped_bits_change_nothing():
    queries, items, y_query, y_db = random_case(4)
    rng = np.random.default_rng(0)
    order, flips = rng.permutation(12), rng.choice([-1, 1], 12)
    moved = [BinaryCodes.from_signs((codes.to_signs() * flips)[:, order]) for codes in (queries, items)]
    before, after = (
        hamming_histograms(queries, items, y_query, y_db),
        hamming_histograms(*moved, y_query, y_db),
    )
    assert np.array_equal(before.count, after.count)
    assert np.array_equal(before.relevant, after.relevant)


def test_equal_codes_score_the_prevalence():
    codes = BinaryCodes.from_signs(np.ones((40, 8)))
    y = np.repeat([0, 1], [10, 30])
    histograms = hamming_histograms(codes[:1], codes, y[:1], y)
    assert np.allclose(expected_precision(histograms, [1, 10, 25, 40]), 0.25)
    curve = precision_recall(histograms)
    assert np.allclose(curve.precision, 0.25)
    assert np.allclose(curve.recall, 1.0)
    rng = np.random.default_rng(0)
    sampled = [ap_of_ranking(rng.permutation(y == 0)) for _ in range(4000)]
    # Four standard errors of the mean of the sampled rankings.
    assert average_precision(histograms)[0] == pytest.approx(np.mean(sampled), abs=4 * np.std(sampled) / 63)


def test_one_codeword_per_class_scores_one_everywhere():
    codewords = BinaryCodes.from_signs([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    y = np.repeat([0, 1, 2], 20)
    codes = codewords[y]
    histograms = hamming_histograms(codes, codes, y, y)
    assert np.all(expected_precision(histograms, [1, 10, 20]) == 1)
    assert np.allclose(average_precision(histograms), 1)
    curve = precision_recall(histograms)
    assert (curve.precision[0], curve.recall[0]) == (1, 1)
    assert pr_area(curve, "step") == 1


def test_precision_and_recall_by_radius_match_loops_over_queries():
    queries, items, y_query, y_db = random_case(7, n_queries=9, n_bits=14)
    histograms = hamming_histograms(queries, items, y_query, y_db)
    distances, same = queries.distances(items), y_query[:, None] == y_db[None, :]
    micro, zero, skip, nan = (
        precision_recall(histograms, average, empty=empty)
        for average, empty in (("micro", "zero"), ("macro", "zero"), ("macro", "skip"), ("macro", "nan"))
    )
    assert micro.empty_share[0] > 0
    for r in range(15):
        balls = [same[q][distances[q] <= r] for q in range(9)]
        pooled = np.concatenate(balls)
        filled = [ball.mean() for ball in balls if len(ball)]
        assert micro.precision[r] == pytest.approx(pooled.mean() if len(pooled) else np.nan, nan_ok=True)
        assert micro.recall[r] == pytest.approx(pooled.sum() / same.sum())
        assert zero.precision[r] == pytest.approx(sum(filled) / 9)
        assert skip.precision[r] == pytest.approx(np.mean(filled) if filled else np.nan, nan_ok=True)
        assert nan.precision[r] == pytest.approx(np.mean(filled) if len(filled) == 9 else np.nan, nan_ok=True)
        assert zero.recall[r] == pytest.approx(np.mean([b.sum() / n for b, n in zip(balls, same.sum(1), strict=True)]))
        assert zero.empty_share[r] == pytest.approx(1 - len(filled) / 9)


def test_last_point_of_the_curve_is_the_prevalence():
    curve = precision_recall(hamming_histograms(*random_case(8, n_classes=2)))
    y_query, y_db = random_case(8, n_classes=2)[2:]
    assert curve.recall[-1] == 1
    assert curve.precision[-1] == pytest.approx(np.mean(y_query[:, None] == y_db[None, :]))


def test_area_by_hand():
    curve = precision_recall(HammingHistograms([[0, 1, 1, 2]], [[0, 1, 0, 1]]))
    assert np.isnan(curve.precision[0])
    assert curve.precision[1:].tolist() == [1, 0.5, 0.5]
    assert curve.recall.tolist() == [0, 0.5, 0.5, 1]
    assert pr_area(curve) == pytest.approx(0.25)
    assert pr_area(curve, "step") == pytest.approx(0.75)


def test_queries_without_a_relevant_item_are_counted_and_left_out_of_recall():
    histograms = HammingHistograms([[2, 2], [1, 3]], [[1, 1], [0, 0]])
    curve = precision_recall(histograms, "macro")
    assert curve.n_without_relevant == 1
    assert curve.recall.tolist() == [0.5, 1]
    assert curve.precision.tolist() == [0.25, 0.25]
    assert np.isnan(average_precision(histograms)).tolist() == [False, True]
    assert lookup(histograms, 0).recall == 0.5


def test_lookup_agrees_with_the_macro_curve():
    queries, items, y_query, y_db = random_case(9, n_bits=16)
    histograms = hamming_histograms(queries, items, y_query, y_db)
    curve = precision_recall(histograms, "macro")
    found = lookup(histograms, 2)
    assert found.precision == pytest.approx(curve.precision[2])
    assert found.recall == pytest.approx(curve.recall[2])
    assert found.empty_share == pytest.approx(curve.empty_share[2])
    assert found.mean_candidates == pytest.approx((queries.distances(items) <= 2).sum(axis=1).mean())


def test_map_of_strings_equals_map_of_numbers():
    queries, items, y_query, y_db = random_case(10)
    names = np.array(["cat", "dog", "emu"])
    by_name = mean_average_precision(queries, items, names[y_query], names[y_db])
    assert by_name == mean_average_precision(queries, items, y_query, y_db)


@pytest.mark.parametrize(
    ("y_query", "y_db"),
    [
        (np.array([2**53 + 1], np.int64), np.array([2**53, 2**53 + 1], np.uint64)),
        (np.array([2**63 + 1], np.uint64), np.array([5, 6], np.int64)),
        (np.array([2**53 + 1], np.int64), np.array([float(2**53), 3.0])),
        (np.array([2**60 + 1], object), np.array([2**60, 2**60 + 1], np.uint64)),
    ],
    ids=["int64 and uint64", "uint64 and int64", "int64 and float64", "objects and uint64"],
)
@pytest.mark.parametrize("ties", ["expected", "index"])
def test_large_integer_labels_are_compared_exactly(y_query, y_db, ties):
    codes = BinaryCodes.from_signs(np.ones((2, 3)))
    expected = np.mean([int(label) == int(y_query[0]) for label in y_db])
    assert precision_at(codes[:1], codes, y_query, y_db, 2, ties=ties) == expected
    relevant = hamming_histograms(codes[:1], codes, y_query, y_db).n_relevant
    assert relevant.tolist() == [2 * expected]


def test_equal_numbers_of_different_types_are_one_label():
    queries, items, y_query, y_db = random_case(12)
    expected = mean_average_precision(queries, items, y_query, y_db)
    for dtype in (np.uint8, np.float32, np.uint64, object):
        assert mean_average_precision(queries, items, y_query, y_db.astype(dtype)) == expected


BAD_CALLS = {
    "must be BinaryCodes": lambda q, d, a, b: hamming_histograms(q.to_signs(), d, a, b),
    "Encode both sides with the same hasher": lambda q, d, a, b: hamming_histograms(
        BinaryCodes.from_signs(np.ones((len(q), 5))), d, a, b
    ),
    "y_query has shape": lambda q, d, a, b: hamming_histograms(q, d, a[:-1], b),
    "labels are missing": lambda q, d, a, b: hamming_histograms(q, d, np.where(a == 1, -1, a), b),
    "so none could be equal": lambda q, d, a, b: hamming_histograms(q, d, a.astype(str), b),
    "y_query holds object and y_db int64": lambda q, d, a, b: hamming_histograms(q, d, a.astype(str).astype(object), b),
    "the same columns": lambda q, d, a, b: hamming_histograms(q, d, np.eye(3)[a], b),
    "entries other than 0 and 1": lambda q, d, a, b: hamming_histograms(q, d, 2 * np.eye(3)[a], np.eye(3)[b]),
    "s is 0; it must be an integer": lambda q, d, a, b: precision_at(q, d, a, b, 0),
    "ties is 'best'": lambda q, d, a, b: precision_at(q, d, a, b, ties="best"),
    "k is 0; it must be": lambda q, d, a, b: mean_average_precision(q, d, a, b, 0),
    "sum to": lambda q, d, a, b: HammingHistograms([[1, 1], [2, 1]], [[0, 0], [0, 0]]),
    "are a subset of all items": lambda q, d, a, b: HammingHistograms([[1, 1]], [[2, 0]]),
    "must hold integers": lambda q, d, a, b: HammingHistograms([[1.0, 1]], [[1.0, 0]]),
    "holds no codes": lambda q, d, a, b: hamming_histograms(q, d[:0], a, b[:0]),
    "s is empty": lambda q, d, a, b: expected_precision(BY_HAND, []),
}


@pytest.mark.parametrize("message", BAD_CALLS)
def test_bad_input_is_refused_with_a_reason(message):
    with pytest.raises((ValueError, TypeError), match=message):
        BAD_CALLS[message](*random_case(11))
