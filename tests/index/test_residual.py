"""ResidualIndex answers like a sort of the distances between vectors, for any class field, rule, filter and radius."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.exceptions import IndexFormatError, UnsupportedOperationError
from starshl.index import Reconstruction, ResidualIndex, VectorQueries, load_index
from starshl.index.files import write_index_file
from starshl.testing import check_index


def whole_numbers(n_bits, class_bits, rng):
    """A reconstruction whose distances are exact in single precision, so that ties are ties."""
    centers = rng.integers(-4, 5, size=(1 << class_bits, n_bits)).astype(float)
    scales = rng.integers(0, 3, size=n_bits - class_bits).astype(float)
    return Reconstruction(centers, np.eye(n_bits)[class_bits:], scales, 4.0)


def random_codes(n_codes, n_bits, rng):
    """Random codes, many of them equal."""
    pool = rng.choice([-1, 1], size=(60, n_bits))
    return BinaryCodes.from_signs(pool[rng.integers(60, size=n_codes)])


def distances_by_hand(queries, items, index):
    class_bits, reconstruction = index.class_bits, index.reconstruction
    gaps = queries.vectors[:, None] - reconstruction.vectors(items)[None]
    plain = np.einsum("qid,qid->qi", gaps, gaps) / reconstruction.unit
    fields = [codes.to_signs()[:, :class_bits] for codes in (queries.codes, items)]
    differs = (fields[0][:, None] != fields[1][None]).any(axis=2)
    distances = plain + index.class_weight * differs
    for q in range(len(queries) if index.class_first else 0):
        of_class = np.sort(plain[q][~differs[q]])
        if len(of_class):
            beyond = of_class[: index.class_first][-1] + (1 + plain[q]) / 1024
            distances[q] = np.where(differs[q], np.maximum(distances[q], beyond), distances[q])
    return distances


RULES = [(9, 2, 0.0, 0), (9, 2, 3.0, 0), (32, 4, 0.5, 0), (32, 4, 0.0, 10), (64, 3, 1.25, 7), (80, 9, 0.5, 1000)]


@pytest.fixture(params=RULES)
def case(request):
    """Index, its codes and ids, and queries with the distances to all items."""
    n_bits, class_bits, weight, first = request.param
    rng = np.random.default_rng(0)
    reconstruction = whole_numbers(n_bits, class_bits, rng)
    codes, ids = random_codes(300, n_bits, rng), rng.permutation(900)[:300] - 40
    rule = {"class_weight": weight, "class_first": first}
    index = ResidualIndex.from_codes(codes, ids, reconstruction=reconstruction, **rule)
    vectors = rng.integers(-4, 5, size=(14, n_bits)).astype(float)
    queries = VectorQueries(random_codes(14, n_bits, rng), vectors)
    return index, codes, ids, queries, distances_by_hand(queries, codes, index)


def assert_nearest(found, distances, ids, k):
    for q, row in enumerate(distances):
        order = np.lexsort((ids, row))[:k]
        assert found.distances[q].tolist() == row[order].tolist()
        assert found.ids[q].tolist() == ids[order].tolist()


@pytest.mark.parametrize("k", [1, 10, 299, 1000])
def test_search_gives_what_a_sort_of_all_distances_gives(case, k):
    index, _, ids, queries, distances = case
    assert_nearest(index.search(queries, k), distances, ids, k)


def test_search_among_some_ids_gives_what_a_sort_of_theirs_gives(case):
    index, codes, ids, queries, _ = case
    for chosen in (np.arange(0, 300, 3), np.arange(2), np.arange(0)):
        distances = distances_by_hand(queries, codes[chosen], index)
        assert_nearest(index.search(queries, 20, among=ids[chosen]), distances, ids[chosen], 20)


def test_radius_gives_every_item_up_to_it(case):
    index, _, ids, queries, distances = case
    for radius in (0, 2.5, float(np.median(distances)), 1e9):
        balls = index.search_radius(queries, radius)
        for q, row in enumerate(distances):
            order = np.lexsort((ids, row))
            order = order[row[order] <= radius]
            assert balls.of(q).ids.tolist() == ids[order].tolist()
            assert balls.of(q).distances.tolist() == row[order].tolist()


def test_code_stands_for_its_reconstructed_vector(case):
    index, codes, _, queries, _ = case
    vectors = index.reconstruction.vectors(queries.codes)
    same = index.search(VectorQueries(queries.codes, vectors), 30)
    assert all(np.array_equal(a, b) for a, b in zip(index.search(queries.codes, 30), same, strict=True))
    assert (index.search(codes[:5], 1).distances == 0).all()


def test_items_come_and_go(case):
    index, codes, ids, queries, distances = case
    index.remove(ids[:80])
    assert_nearest(index.search(queries, 15), distances_by_hand(queries, codes[80:], index), ids[80:], 15)
    index.add(codes[:80], ids[:80])  # between the others
    assert_nearest(index.search(queries, 15), distances, ids, 15)
    for start in range(0, 300, 100):  # behind them, twice into spare room
        index.add(codes[slice(start, start + 100)], ids[start : start + 100] + 1000)
    index.remove(ids)
    assert_nearest(index.search(queries, 15), distances, ids + 1000, 15)


def test_saved_index_gives_the_same_answers(case, tmp_path):
    index, codes, _, queries, _ = case
    index.save(tmp_path / "codes.index")
    for memory_map in (False, True):
        loaded = load_index(tmp_path / "codes.index", memory_map=memory_map)
        for ours, theirs in zip(loaded.search(queries, 20), index.search(queries, 20), strict=True):
            assert np.array_equal(ours, theirs)
        loaded.add(codes[:1], [10**6])
        assert len(loaded) == 301


def test_threads_change_no_answer():
    rng = np.random.default_rng(1)
    components = np.linalg.qr(rng.standard_normal((40, 40)))[0][:28]
    reconstruction = Reconstruction(rng.standard_normal((16, 40)), components, rng.random(28), 3.0)
    codes = BinaryCodes.from_signs(rng.choice([-1, 1], size=(70_000, 32)))
    index = ResidualIndex.from_codes(codes, reconstruction=reconstruction, class_weight=0.2, class_first=10)
    for n_queries in (3, 100):
        queries = VectorQueries(codes[:n_queries], rng.standard_normal((n_queries, 40)))
        index.n_jobs = 1
        alone, ball = (
            index.search(queries, 20),
            index.search_radius(queries, float(index.search(queries).distances[0, 9])),
        )
        index.n_jobs = 3
        assert all(np.array_equal(a, b) for a, b in zip(index.search(queries, 20), alone, strict=True))
        again = index.search_radius(queries, float(alone.distances[0, 9]))
        assert all(np.array_equal(a, b) for a, b in zip(again, ball, strict=True))
        exact = np.sort(distances_by_hand(queries[:3], codes, index), axis=1)[:, :20]
        assert np.allclose(alone.distances[:3], exact, rtol=1e-5, atol=1e-5)


def corners(n_bits):
    """A reconstruction to the corners of a cube of side one: squared distances are Hamming distances."""
    centers = np.zeros((2, n_bits))
    centers[:, 0] = [-0.5, 0.5]
    return Reconstruction(centers, np.eye(n_bits)[1:], np.full(n_bits - 1, 0.5), 1.0)


def test_corners_of_a_cube_keep_the_contract_of_plain_codes():
    check_index(lambda n_bits: ResidualIndex(n_bits, corners(n_bits)))


def test_wrong_queries_and_items_are_refused(case):
    index, codes, _, queries, _ = case
    with pytest.raises(ValueError, match="have 2 numbers"):
        index.search(VectorQueries(queries.codes[:1], [[1.0, 2.0]]))
    for vectors, message in (
        (
            [[1.0], [2.0]],
            r"vectors has shape \(2, 1\); with 1 code it must be \(1, n_features\)\. Give",
        ),
        ([["a"]], "vectors holds <U1; it must hold numbers"),
        ([[1.0], [2.0, 3.0]], "rows of different lengths"),
        ([[np.nan]], r"NaN or infinity; .* Impute or drop"),
    ):
        with pytest.raises(ValueError, match=message):
            VectorQueries(codes[:1], vectors)
    with pytest.raises(TypeError, match="codes is a list"):
        VectorQueries([1], [[1.0]])
    with pytest.raises(UnsupportedOperationError, match="'scores'"):
        index.search(queries, scores=np.zeros((14, codes.n_bits)))
    fewer = Reconstruction(index.reconstruction.centers[:1], *_parts(index.reconstruction))
    with pytest.raises(ValueError, match="knows classes 0 to 0"):
        ResidualIndex(codes.n_bits, fewer).add(codes)


def _parts(reconstruction):
    return reconstruction.components, reconstruction.scales, reconstruction.unit


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[0.0]], [[1.0, 0.0]], [1.0], 1.0), "centers has shape"),
        (([[0.0, 0.0]], [[1.0, 0.0]], [1.0, 2.0], 1.0), "scales has shape"),
        (([[0.0, 0.0]], [[1.0, 1.0]], [1.0], 1.0), "not orthonormal"),
        (([[0.0, np.inf]], [[1.0, 0.0]], [1.0], 1.0), "not finite"),
        (([[0.0, 0.0]], [[1.0, 0.0]], [1.0], 0.0), "unit is 0.0"),
    ],
)
def test_impossible_reconstructions_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Reconstruction(*parts)


def test_impossible_indexes_are_refused():
    for n_bits in (7, 8, 25):
        with pytest.raises(ValueError, match="n_bits is"):
            ResidualIndex(n_bits, whole_numbers(10, 2, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="class_weight is -1"):
        ResidualIndex(8, corners(8), class_weight=-1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rule", np.array([-1.0, 0.0, 1.0])),
        ("rule", np.array([0.0, 0.5])),
        ("rule", np.array([0.0, np.nan, 1.0])),
        ("rule", np.array([0.0, 0.0, np.nan])),
        ("centers", np.zeros((1, 8))),
        ("components", np.ones((7, 8))),
        ("scales", np.ones(3)),
    ],
)
def test_file_with_impossible_parts_is_refused(name, value, stored, tmp_path):
    index = ResidualIndex.from_codes(BinaryCodes.from_signs(np.ones((2, 8))), reconstruction=corners(8))
    write_index_file(
        tmp_path / "bad.index", {"kind": "residual", "n_bits": 8, "space_id": None}, stored(index) | {name: value}
    )
    with pytest.raises(IndexFormatError, match="complete index"):
        load_index(tmp_path / "bad.index")
