"""Indexes of words answer like a sort of all scores, for any words, posteriors, rule, filter and history."""

import numpy as np
import pytest

from starshl.codes import BinaryCodes, EncodedQueries
from starshl.index import load_index

from .word_cases import added, make_case, without_items

KINDS = ["hamming words", "dictionary", "hybrid", "residual"]
HARD = [
    {},
    {"n_classes": 1},
    {"n_classes": 2, "items": "sure"},
    {"asked": "sure"},
    {"asked": "flat"},
    {"items": "flat", "asked": "flat"},
    {"items": "spread", "n_classes": 32},
    {"n_items": 3},
]


def assert_best(case, found, k, least=0.0, among=None):
    """Assert that an answer is that of a stable sort of all scores."""
    scores, probabilities = case.scores()
    for q in range(len(case.queries)):
        passing = probabilities[q] >= least
        if among is not None:
            passing &= np.isin(case.ids, among)
        order = np.lexsort((case.ids, scores[q]))
        order = order[passing[order]][:k]
        n = len(order)
        assert found.ids[q, :n].tolist() == case.ids[order].tolist()
        assert np.allclose(found.distances[q, :n], scores[q, order], rtol=1e-12)
        assert (found.ids[q, n:] == -1).all()
        assert np.isinf(found.distances[q, n:]).all()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("hard", HARD, ids=str)
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_search_gives_what_a_sort_of_all_scores_gives(kind, hard, k):
    case = added(make_case(kind, **hard))
    found = case.index.search(case.queries, k)
    assert found.ids.shape == (len(case.queries), min(k, len(case.ids)))
    assert_best(case, found, k)


@pytest.mark.parametrize("hard", HARD, ids=str)
def test_probability_is_the_sum_over_classes(kind, hard):
    case = added(make_case(kind, **hard))
    assert np.allclose(case.scores()[1], case.probabilities(), rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("sizes", [[1] * 399, [200] + [1] * 100, [399], [7] * 57])
def test_small_batches_change_no_answer(kind, sizes):
    case = added(make_case(kind), sizes)
    assert_best(case, case.index.search(case.queries, 25), 25)
    assert np.array_equal(case.index.reconstruct(case.ids).packed, case.codes.packed)


def test_removed_items_are_gone_and_come_back(kind):
    case = added(make_case(kind), [300, 50])
    gone = np.arange(0, 400, 3)
    case.index.remove(case.ids[gone])
    assert_best(without_items(case, gone), case.index.search(case.queries, 25), 25)
    case.index.add(case.codes[gone], case.ids[gone])
    assert_best(case, case.index.search(case.queries, 25), 25)


@pytest.mark.parametrize("share", [0.5, 0.02, 0.0])
def test_filters_leave_the_order_as_it_is(kind, share):
    case = added(make_case(kind), [350])
    among = case.ids[: int(share * 400)]
    found = case.index.search(case.queries, 12, among=among)
    assert found.ids.shape[1] == min(12, len(among))
    assert_best(case, found, 12, among=among)
    mask = np.isin(case.index.ids, among)
    assert np.array_equal(case.index.search(case.queries, 12, among=mask).ids, found.ids)


@pytest.mark.parametrize("quantile", [0.0, 0.5, 0.97, 1.0])
def test_items_that_are_not_likely_enough_are_left_out(kind, quantile):
    case = added(make_case(kind))
    least = float(np.quantile(case.scores()[1], quantile, method="higher"))  # some item has just this probability
    assert_best(case, case.index.search(case.queries, 400, min_probability=least), 400, least)
    above = np.nextafter(least, 2)
    if above <= 1:
        assert_best(case, case.index.search(case.queries, 400, min_probability=above), 400, above)


@pytest.mark.parametrize("least", [None, 0.4])
@pytest.mark.parametrize("quantile", [0.0, 0.3, 1.0])
def test_radius_gives_every_item_up_to_it(kind, quantile, least):
    case = added(make_case(kind), [380])
    scores, probabilities = case.scores()
    for among in (None, case.ids[::3], case.ids[:5]):
        radius = float(np.quantile(scores, quantile)) + 1e-4
        balls = case.index.search_radius(case.queries, radius, among=among, min_probability=least)
        for q in range(len(case.queries)):
            inside = (scores[q] <= radius) & (probabilities[q] >= (least or 0))
            if among is not None:
                inside &= np.isin(case.ids, among)
            order = np.lexsort((case.ids, scores[q]))
            assert balls.of(q).ids.tolist() == case.ids[order[inside[order]]].tolist()
            assert np.allclose(balls.of(q).distances, scores[q][order[inside[order]]], rtol=1e-12)


def test_radius_is_inclusive_and_unlimited_by_default(kind):
    case = added(make_case(kind))
    nearest = case.index.search(case.queries, 30)
    for q, distance in enumerate(nearest.distances[:, -1]):
        ball = case.index.search_radius(case.queries[q : q + 1], distance)
        assert np.isin(nearest.ids[q], ball.ids).all()
        below = case.index.search_radius(case.queries[q : q + 1], np.nextafter(distance, -1)) if distance > 0 else None
        assert below is None or not np.isin(nearest.ids[q, -1], below.ids)
    assert len(case.index.search_radius(case.queries).ids) == len(case.queries) * 400


def test_neither_batch_nor_threads_change_a_byte(kind):
    case = added(make_case(kind, n_items=30_000, n_queries=90, n_classes=7), [29_000])
    alone = case.index.search(case.queries, 15)
    balls = case.index.search_radius(case.queries, float(alone.distances[0, -1]))
    case.index.n_jobs = 3
    again = case.index.search(case.queries, 15)
    assert all(np.array_equal(a, b) for a, b in zip(alone, again, strict=True))
    other = case.index.search_radius(case.queries, float(alone.distances[0, -1]))
    assert all(np.array_equal(a, b) for a, b in zip(balls, other, strict=True))
    for some in (slice(0, 1), slice(40, 47)):
        few = case.index.search(case.queries[some], 15)
        assert np.array_equal(few.ids, alone.ids[some])
        assert np.array_equal(few.distances, alone.distances[some])


def test_code_alone_has_the_posterior_of_its_word(kind):
    case = added(make_case(kind))
    codes = case.codes[:20]
    whole = EncodedQueries(codes, case.index.words.posteriors_of(codes))
    for ours, theirs in zip(case.index.search(codes, 20), case.index.search(whole, 20), strict=True):
        assert np.array_equal(ours, theirs)


def test_stored_items_can_be_queries(kind):
    case = added(make_case(kind), [250])
    queries = case.index.queries_of(case.ids[:20])
    assert np.array_equal(queries.codes.packed, case.codes[:20].packed)
    assert np.allclose(queries.posteriors, case.index.words.posteriors_of(case.codes[:20]))
    for ours, theirs in zip(case.index.search(queries, 20), case.index.search(case.codes[:20], 20), strict=True):
        assert np.array_equal(ours, theirs)


def test_saved_index_gives_the_same_answers(kind, tmp_path):
    case = added(make_case(kind), [390])
    case.index.save(tmp_path / "codes.index")
    for memory_map in (False, True):
        loaded = load_index(tmp_path / "codes.index", memory_map=memory_map)
        assert type(loaded) is type(case.index)
        for ours, theirs in zip(loaded.search(case.queries, 30), case.index.search(case.queries, 30), strict=True):
            assert np.array_equal(ours, theirs)
        loaded.add(case.codes[:1], [10**6])
        assert len(loaded) == 401
        loaded.remove(case.ids[:300])
        assert len(loaded) == 101


def test_file_does_not_depend_on_the_order_of_additions(kind, tmp_path):
    for name, sizes in (("a", []), ("b", [13] * 20)):
        added(make_case(kind), sizes).index.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_labels_come_back_and_count_exactly():
    case = added(make_case("hamming words"))
    assert np.array_equal(case.index.reconstruct(case.ids).classes, case.codes.classes)
    labeled = np.flatnonzero(case.codes.classes >= 0)
    found = case.index.probabilities(case.queries, np.tile(case.ids[labeled], (len(case.queries), 1)))
    assert np.array_equal(found, case.queries.posteriors[:, case.codes.classes[labeled]].astype(np.float64))


def test_label_of_a_class_that_the_words_do_not_know_leaves_the_code_unlabeled():
    case = make_case("hamming words")
    codes = BinaryCodes(case.codes.packed, case.codes.n_bits, classes=np.full(400, 9))
    case.index.add(codes, case.ids)
    plain = case.index.words.decode(codes.to_signs())
    assert np.allclose(case.scores()[1], case.queries.posteriors @ plain.T, atol=1e-5)
    assert (case.index.reconstruct(case.ids).classes == 9).all()


@pytest.mark.parametrize("kind", ["hybrid", "residual"])
@pytest.mark.parametrize("weight", [0.0, 0.3, 50.0])
def test_weight_orders_by_neighbors_alone_or_by_class_first(kind, weight):
    case = added(make_case(kind, class_weight=weight))
    assert_best(case, case.index.search(case.queries, 40), 40)
    if weight == 0:
        assert np.array_equal(case.scores()[0], case.index.rule.saturated(case.distances()))
