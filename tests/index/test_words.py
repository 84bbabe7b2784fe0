"""Indexes of words answer like a sort of all scores, for any words, posteriors, rule, filter and history."""

import numpy as np
import pytest

from starshl.codes import BinaryCodes, EncodedQueries, HammingWords, ScoreRule, WordDictionary
from starshl.exceptions import IndexFormatError, UnsupportedOperationError
from starshl.index import FlatIndex, HybridIndex, PosteriorIndex, Reconstruction, ResidualIndex, load_index
from starshl.index.files import write_index_file
from starshl.testing import check_index

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


def test_vectors_of_stored_items_are_the_same_for_any_batch():
    rng = np.random.default_rng(0)
    components = np.linalg.qr(rng.normal(size=(60, 40)))[0].T
    reconstruction = Reconstruction(rng.normal(size=(3, 60)), components, rng.random(40))
    words = WordDictionary.fitted(rng.dirichlet(np.ones(3), 200), 4)
    index = ResidualIndex(44, words, ScoreRule(1, 1, 1), reconstruction)
    ids = index.add(BinaryCodes.from_signs(rng.choice([-1, 1], size=(50, 44))))
    alone = np.concatenate([index.queries_of([each]).vectors for each in ids])
    np.testing.assert_array_equal(index.queries_of(ids).vectors, alone)


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


def hamming_hybrid(n_bits):
    """An index in which the word of one bit costs as much as a neighbor bit, so that scores are Hamming distances."""
    cost_of_one = 1 / -np.log(1e-6)
    return HybridIndex(n_bits, WordDictionary(np.eye(2), 1), ScoreRule(cost_of_one, 1, 1e6))


def corners(n_bits):
    """An index of the corners of a cube of side one: squared distances are Hamming distances."""
    centers = np.zeros((2, n_bits))
    centers[:, 0] = [-0.5, 0.5]
    cube = Reconstruction(centers, np.eye(n_bits)[1:], np.full(n_bits - 1, 0.5))
    words = WordDictionary(np.eye(2), 1)
    return ResidualIndex(n_bits, words, ScoreRule(0, 1, 1e6), cube)


@pytest.mark.parametrize("make", [hamming_hybrid, corners])
def test_scores_that_are_hamming_distances_keep_the_contract_of_plain_codes(make):
    check_index(make)


WORDS, SIGNS = WordDictionary(np.eye(3), 2), HammingWords(np.array([[1, 1, -1], [1, -1, 1]]), 1.0)
RULE = ScoreRule(1.0, 1.0, 3.0)
PLANE = Reconstruction(np.zeros((3, 4)), np.eye(4)[:2], np.ones(2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PosteriorIndex(4, SIGNS), ValueError, "n_bits is 4, and the words have 3 bits"),
        (lambda: PosteriorIndex(3, None), TypeError, "words is a NoneType"),
        (lambda: PosteriorIndex(2, WORDS), TypeError, "words is a WordDictionary"),
        (lambda: HybridIndex(8, SIGNS, RULE), TypeError, "words is a HammingWords"),
        (lambda: HybridIndex(8, WordDictionary(np.eye(3), 17), RULE), ValueError, "room for 16"),
        (lambda: HybridIndex(1, WORDS, RULE), ValueError, "n_bits is 1, and the words have 2"),
        (lambda: ResidualIndex(9, WORDS, RULE, PLANE), ValueError, "3 centers and 2 neighbor bits"),
        (lambda: Reconstruction(np.zeros((3, 4)), np.ones((2, 4)), np.ones(2)), ValueError, "not orthonormal"),
        (lambda: Reconstruction(np.zeros((3, 4)), np.eye(4)[:2], np.ones(3)), ValueError, "there are 2 components"),
        (lambda: Reconstruction(np.zeros((3, 5)), np.eye(4)[:2], np.ones(2)), ValueError, "they must be"),
        (lambda: Reconstruction(np.full((3, 4), np.nan), np.eye(4)[:2], np.ones(2)), ValueError, "not finite"),
    ],
)
def test_words_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_queries_of_another_model_are_refused():
    case = added(make_case("residual"))
    for parts, message in (
        ({"posteriors": np.ones((2, 5))}, "are over 5 classes; those of this index are over 4"),
        ({"vectors": np.ones((2, 3))}, "have 3 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            case.index.search(EncodedQueries(case.codes[:2], **parts))
    with pytest.raises(ValueError, match=r"shape \(3,\); it must hold the ids of hits, one row per query \(2\)"):
        case.index.probabilities(case.codes[:2], [1, 2, 3])


def test_hamming_distances_are_no_probabilities():
    index = FlatIndex.from_codes(BinaryCodes.from_signs(np.ones((2, 5))))
    with pytest.raises(UnsupportedOperationError, match="probability"):
        index.search(index.reconstruct([0]), min_probability=0.5)


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("hybrid", "rule", [1.0, -1.0, 2.0]),
        ("hybrid", "rule", [1.0, np.nan, 2.0]),
        ("hybrid", "entries", np.full((32, 4), np.nan, np.float32)),
        ("hybrid", "entry_bits", [60]),
        ("hybrid", "classes", np.full(9, -2, np.int32)),
        ("dictionary", "entries", np.ones((1, 4))),
        ("residual", "centers", np.zeros((4, 3))),
        ("residual", "scales", np.zeros(1)),
        ("hamming words", "sharpness", [np.inf]),
        ("hamming words", "codeword_bits", [7]),
        ("hamming words", "starts", [0, 5, 5, 400]),
        ("hamming words", "ids", np.zeros(400, np.int64)),
        ("hamming words", "class_numbers", [3, 3, 3, 3]),
        ("hamming words", "planes", np.zeros((1, 400), np.uint32)),
    ],
)
def test_file_that_does_not_fit_is_refused(kind, name, wrong, stored, tmp_path):
    case = added(make_case(kind))
    header = {"kind": case.index.kind, "n_bits": case.index.n_bits, "space_id": None}
    write_index_file(tmp_path / "bad.index", header, stored(case.index) | {name: np.asarray(wrong)})
    with pytest.raises(IndexFormatError, match="complete index"):
        load_index(tmp_path / "bad.index")
