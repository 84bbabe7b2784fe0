"""HybridHasher: class field and neighbor bits in one code, a hasher like any other."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits

import starshl
from starshl import BinaryCodes, Collection, HybridHasher, StarRidge, make_index
from starshl._common.bundle import read_bundle, write_bundle
from starshl.codes import WordDictionary
from starshl.data.features import Scale
from starshl.exceptions import BundleFormatError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import ITQ, SDH, LSHash, SpectralHash
from starshl.index import FlatIndex, HybridIndex, ResidualIndex
from starshl.learning.linalg import nearest_rows
from starshl.testing import hasher_checks


class Quick(HybridHasher):
    """Many fits are quick with one kernel."""

    def __init__(
        self,
        n_bits=10,
        class_hasher=None,
        neighbor_hasher=None,
        form="hamming",
        class_weight=1.0,
        n_jobs=None,
        random_state=0,
    ):
        super().__init__(
            n_bits,
            class_hasher=class_hasher,
            neighbor_hasher=neighbor_hasher,
            form=form,
            class_weight=class_weight,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def _default_class_hasher(self, seed):
        return StarRidge(kernels="scaled", random_state=seed)


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in hasher_checks(Quick())])
@pytest.mark.filterwarnings("ignore:n_bits is")
def test_hybrid_obeys_the_contract(check):
    check()


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16.0, y[:500]


@pytest.fixture(scope="module")
def hasher(digits):
    return Quick(n_bits=24).fit(digits[0][:400], digits[1][:400])


@pytest.fixture(scope="module")
def residual(digits):
    return Quick(n_bits=24, form="residual").fit(digits[0][:400], digits[1][:400])


def class_numbers(codes, n_bits):
    return (codes.to_signs()[:, :n_bits] > 0) @ (1 << np.arange(n_bits))


def test_code_is_the_word_of_the_posterior_and_the_neighbor_code(hasher, digits):
    codes = hasher.encode(digits[0])
    assert hasher.class_bits_ == 6
    assert hasher.n_bits_ == codes.n_bits == 24
    posteriors = hasher.predict_proba(digits[0])
    assert np.array_equal(posteriors, hasher.class_hasher_.predict_proba(digits[0]))
    # The learned entry of least cross-entropy, never that of a label.
    costs = -posteriors @ np.log(np.maximum(hasher.dictionary_[10:], 1e-7)).T
    assert np.allclose(costs[np.arange(500), class_numbers(codes, 6) - 10], costs.min(axis=1))
    assert np.array_equal(codes.to_signs()[:, 6:], hasher.neighbor_hasher_.encode(digits[0]).to_signs())


def test_dictionary_is_learned_from_posteriors_of_rows_without_themselves(hasher):
    learned = WordDictionary.fitted(hasher.class_hasher_.training_proba(), 6)
    assert np.array_equal(hasher.dictionary_, learned.entries)
    assert np.array_equal(hasher.dictionary_[:10], np.eye(10))
    assert hasher.dictionary_[10:].max(axis=1).min() < 0.9  # words of doubt


def test_items_have_the_word_of_their_label_where_it_is_known(hasher, digits):
    X, y = digits[0][400:], digits[1][400:].copy()
    y[::3], y[1] = -1, 77
    own, items = hasher.encode(X), hasher.encode_database(X, y)
    known = (y >= 0) & (y < 10)
    assert np.array_equal(class_numbers(items, 6)[known], y[known])
    assert items[np.flatnonzero(~known)] == own[np.flatnonzero(~known)]
    assert np.array_equal(items.to_signs()[:, 6:], own.to_signs()[:, 6:])
    assert hasher.relabel(own, y) == items
    assert hasher.relabel(own, np.full(len(y), -1)) == own
    assert np.array_equal(hasher.words.columns_of(items), np.where(known, y, -1))


def test_codes_and_queries_depend_on_no_other_item(hasher, digits):
    X, y = digits
    labeled, unlabeled = hasher.encode_database(X[:40], y[:40]), hasher.encode_database(X[40:80])
    both = hasher.encode_database(X[:80], [*y[:40].tolist(), *[-1] * 40])
    assert both[:40] == labeled
    assert both[40:] == unlabeled
    assert hasher.encode_database(X[:80])[:40] == hasher.encode(X[:40])


@pytest.mark.parametrize(("n_classes", "n_class_bits"), [(1, 2), (2, 3), (3, 4), (4, 4), (5, 5), (8, 5), (9, 6)])
def test_class_field_has_two_bits_more_than_the_number_of_a_class(digits, n_classes, n_class_bits):
    rows = digits[1] < n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one class
        fitted = Quick(n_bits=12).fit(digits[0][rows], digits[1][rows])
    assert fitted.class_bits_ == n_class_bits
    assert fitted.neighbor_hasher_.n_bits_ == 12 - n_class_bits


def test_short_codes_have_no_neighbor_bits(digits):
    fitted = Quick(n_bits=5).fit(*digits)
    assert fitted.neighbor_hasher_ is None
    assert fitted.class_bits_ == 5
    assert np.array_equal(class_numbers(fitted.encode_database(*digits), 5), digits[1])


def test_labels_share_words_with_a_warning_if_codes_are_too_short(digits):
    with pytest.warns(UserWarning, match=r"n_bits is 4; 10 classes need 5 bits.*Use at least 8"):
        fitted = Quick(n_bits=4).fit(*digits)
    codes = fitted.encode_database(*digits)
    assert (fitted.words.columns_of(codes) == -1).all()
    found = make_index(codes[:400], hasher=fitted).search(fitted.encode_queries(digits[0][400:]), 10).ids
    assert np.mean(digits[1][found] == digits[1][400:, None]) > 0.85


def test_codes_that_cannot_be_made_are_refused_before_classes_are_fitted(digits):
    class Untouched(StarRidge):
        def fit(self, *args, **params):
            raise AssertionError("the classes were fitted")

    with pytest.raises(ValueError, match=r"n_bits is 90.*at most 56"):
        HybridHasher(90, class_hasher=Untouched()).fit(*digits)


def test_search_finds_near_items_of_the_right_class_in_the_whole_list(hasher, digits):
    X, y = digits
    items = hasher.encode_database(X[:400], y[:400])
    index = make_index(items, hasher=hasher)
    assert isinstance(index, HybridIndex)
    queries = hasher.encode_queries(X[400:])
    assert np.array_equal(queries.posteriors, hasher.predict_proba(X[400:]).astype(np.float32))
    ids = index.search(queries, 30).ids
    neighbors = ITQ(24, random_state=0).fit(X[:400])
    plain = make_index(neighbors.encode(X[:400])).search(neighbors.encode(X[400:]), 30).ids
    right = y[400:, None]
    assert np.mean(y[ids] == right) > np.mean(y[plain] == right) + 0.1
    assert np.mean(y[ids[:, 10:]] == right) > np.mean(y[ids[:, :10]] == right) - 0.02
    assert len(np.unique(items.packed, axis=0)) > 250


def test_order_is_that_of_saturated_distance_and_probability(hasher, residual, digits):
    X, y = digits
    labels = np.where(np.arange(400) % 2, y[:400], -1)
    for each in (hasher, residual):
        items, queries = each.encode_database(X[:400], labels), each.encode_queries(X[400:420])
        probabilities = queries.posteriors.astype(np.float64) @ each.words.posteriors_of(items).T
        if each is hasher:
            bits = [codes.to_signs()[:, 6:].astype(int) for codes in (queries.codes, items)]
            distances = (18 - bits[0] @ bits[1].T) / 2
        else:
            vectors = each.make_index(items).reconstruction.vectors(items, each.words)
            distances = ((X[400:420, None] - vectors) ** 2).sum(axis=2)
        far = np.maximum(distances - each.saturation_, 0)
        scores = np.minimum(distances, each.saturation_) + 0.05 * far - each.unit_ * np.log(probabilities.clip(1e-6, 1))
        found = make_index(items, hasher=each).search(queries, 400)
        assert np.allclose(np.take_along_axis(scores, found.ids, axis=1), np.sort(scores, axis=1), atol=1e-3)
        assert np.allclose(found.distances, np.sort(scores, axis=1), atol=1e-3)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_the_weight_goes_from_neighbors_only_to_class_first(form, digits):
    X, y = digits
    fitted = Quick(n_bits=24, form=form).fit(X[:400], y[:400])
    items, queries = fitted.encode_database(X[:400], y[:400]), fitted.encode_queries(X[400:])
    found = {
        weight: make_index(items, hasher=fitted.set_params(class_weight=weight)).search(queries, 20).ids
        for weight in (0, 1, 1000)
    }
    assert (y[found[1000]] == fitted.predict(X[400:])[:, None]).mean() > 0.99
    agreement = [np.mean(y[ids] == y[400:, None]) for ids in found.values()]
    assert agreement[0] < agreement[1] - 0.05
    nearest = nearest_rows(X[400:], X[:400], 5)
    recalls = [
        np.mean([np.isin(near, row).mean() for near, row in zip(nearest, ids, strict=True)]) for ids in found.values()
    ]
    assert recalls[0] > recalls[2]


def test_float_queries_find_more_near_vectors_with_the_same_codes(residual, hasher, digits):
    X, y = digits
    items = residual.encode_database(X[:400], y[:400])
    assert items == hasher.encode_database(X[:400], y[:400])
    queries = residual.encode_queries(X[400:])
    assert queries.codes == hasher.encode_queries(X[400:]).codes
    index = make_index(items, hasher=residual)
    assert isinstance(index, ResidualIndex)
    by_vectors, by_codes = index.search(queries, 20).ids, make_index(items, hasher=hasher).search(queries, 20).ids
    assert np.mean(y[by_vectors] == y[400:, None]) > 0.9
    nearest = nearest_rows(X[400:], X[:400], 5)
    recalls = [
        np.mean([np.isin(near, found).mean() for near, found in zip(nearest, ids, strict=True)])
        for ids in (by_vectors, by_codes)
    ]
    assert recalls[0] > recalls[1] + 0.02


def test_codes_of_labels_stand_for_the_least_squares_reconstruction():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = rng.standard_normal((60, 8)) + 2 * y[:, None]
    fitted = Quick(n_bits=10, form="residual").fit(X, y)
    codes = fitted.encode_database(X, y)
    steps = codes.to_signs()[:, 4:, None] * fitted.neighbor_hasher_.components_  # one column per scale
    membership = np.kron(np.eye(3)[y], np.eye(8)).reshape(60, 8, 24)
    design = np.concatenate([steps.transpose(0, 2, 1), membership], axis=2).reshape(480, 30)
    best = np.linalg.lstsq(design, X.ravel(), rcond=None)[0]
    assert np.allclose(fitted.bit_scales_, best[:6], atol=1e-6)
    assert np.allclose(fitted.class_centers_, best[6:].reshape(3, 8), atol=1e-6)
    vectors = fitted.make_index(codes).reconstruction.vectors(codes, fitted.words)
    assert np.allclose(vectors.ravel(), design @ best, atol=1e-6)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_with_bits_gives_what_a_fit_of_that_length_gives(form, digits):
    X, y = digits
    fitted = Quick(n_bits=12, form=form).fit(X[:300], y[:300])
    longer, own = fitted.with_bits(24), Quick(n_bits=24, form=form).fit(X[:300], y[:300])
    assert longer.class_hasher_ is fitted.class_hasher_
    assert (longer.n_bits, longer.n_bits_, fitted.n_bits_) == (24, 24, 12)
    assert longer.encode(X) == own.encode(X)
    assert longer.score_rule == own.score_rule
    assert longer.vector_rule("cosine") == own.vector_rule("cosine")
    assert longer.hamming_codes(longer.training_codes_) == own.hamming_codes(own.training_codes_)
    assert longer.training_codes_ == own.training_codes_
    found = [each.make_index(own.training_codes_).search(each.encode_queries(X[300:]), 9) for each in (longer, own)]
    assert np.allclose(found[0].distances, found[1].distances, atol=1e-9)
    assert not hasattr(HybridHasher(class_hasher=SDH(8, random_state=0)), "with_bits")


def test_training_codes_hold_labels_and_words_of_rows_without_themselves(digits):
    X, y = digits[0][:300], digits[1][:300].copy()
    y[::4] = -1
    fitted = Quick(n_bits=16).fit(X, y)
    codes = fitted.training_codes_
    given = fitted.encode_database(X, y)
    assert codes[np.flatnonzero(y >= 0)] == given[np.flatnonzero(y >= 0)]
    ridge = fitted.class_hasher_
    left_out = fitted.words.numbers_of(ridge.training_proba())
    assert np.array_equal(class_numbers(codes, 6)[::4], left_out[::4])
    assert np.array_equal(codes.to_signs()[:, 6:], given.to_signs()[:, 6:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_weight": -1}, "class_weight is -1"),
        ({"class_weight": "much"}, "class_weight is 'much'"),
        ({"class_weight": np.inf}, "class_weight is inf"),
        ({"form": "float"}, "form is 'float'"),
        ({"form": "residual", "neighbor_hasher": SpectralHash()}, "SpectralHash, whose bits are not"),
    ],
)
def test_impossible_settings_are_refused(settings, message, digits):
    with pytest.raises(ValueError, match=message):
        Quick(**settings).fit(*digits)


def test_without_labels_the_field_holds_a_cluster(digits):
    X, y = digits
    fitted = Quick(n_bits=24).fit(X)
    assert fitted.field_holds_ == "clusters"
    assert 2 * len(fitted.classes_) <= 2**fitted.class_bits_
    assert "probability" not in fitted.supports  # that of the same cluster is none of the same class
    clusters = fitted.predict(X)
    purity = sum(np.bincount(y[clusters == c]).max() for c in np.unique(clusters)) / len(y)
    assert purity > 0.8
    # A label is not the number of a cluster.
    assert fitted.encode_database(X, y) == fitted.encode(X)
    assert not hasattr(fitted, "relabel")
    found = make_index(fitted.encode_database(X[:400]), hasher=fitted).search(fitted.encode_queries(X[400:]), 10).ids
    assert np.mean(y[found] == y[400:, None]) > 0.85


def test_given_hashers_are_used_and_left_alone(digits, tmp_path):
    ridge, lsh = StarRidge(8, kernels="scaled", random_state=3), LSHash(99, random_state=5)
    fitted = HybridHasher(20, class_hasher=ridge, neighbor_hasher=lsh).fit(*digits)
    assert not hasattr(ridge, "n_bits_")
    assert lsh.n_bits == 99
    assert np.array_equal(
        fitted.encode(digits[0]).to_signs()[:, 6:], LSHash(14, random_state=5).fit_transform(digits[0])
    )
    fitted.save(tmp_path / "hybrid.star")
    loaded = starshl.load(tmp_path / "hybrid.star")
    assert loaded.encode(digits[0]) == fitted.encode(digits[0])
    assert clone(loaded).fit(*digits).encode(digits[0]) == fitted.encode(digits[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_hasher": ITQ()}, "class_hasher is ITQ"),
        ({"class_hasher": SDH(8)}, "without probabilities"),
        ({"class_hasher": 3}, "class_hasher is of type int"),
        ({"neighbor_hasher": "ITQ"}, "neighbor_hasher is of type str"),
        ({"neighbor_hasher": PreparedHasher([Scale()], ITQ())}, "has no parameter n_bits"),
    ],
)
def test_wrong_hashers_are_refused(settings, message, digits):
    with pytest.raises(ValueError, match=message):
        HybridHasher(**settings).fit(*digits)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_saved_hybrid_comes_back_with_both_hashers(form, digits, tmp_path, request):
    hasher = request.getfixturevalue("hasher" if form == "hamming" else "residual")
    plain = HybridHasher(24)
    plain.__dict__ |= {**vars(hasher)}
    plain.save(tmp_path / "hybrid.star")
    loaded = starshl.load(tmp_path / "hybrid.star")
    assert type(loaded) is HybridHasher
    assert loaded.class_hasher is None
    X, y = digits
    assert loaded.encode_database(X, y) == hasher.encode_database(X, y)
    assert np.array_equal(loaded.predict_proba(X), hasher.predict_proba(X))
    assert loaded.score(X, y) == hasher.score(X, y)
    found = [each.make_index(each.encode(X)).search(each.encode_queries(X), 9) for each in (loaded, hasher)]
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*found, strict=True))
    assert loaded.training_codes_ == hasher.training_codes_
    assert loaded.with_bits(16).encode(X) == hasher.with_bits(16).encode(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [("class_bits_", 5), ("class_bits_", 0), ("unit_", -1.0), ("saturation_", -0.5), ("hamming_sharpness_", 0.0)],
)
def test_file_whose_parts_do_not_fit_is_refused(hasher, tmp_path, name, value):
    header, arrays = hasher.pack()
    header["fitted"][name] = {"kind": "value", "value": value}
    write_bundle(tmp_path / "bad.star", {"method": "HybridHasher", **header}, arrays)
    with pytest.raises(BundleFormatError, match="damaged"):
        starshl.load(tmp_path / "bad.star")


@pytest.mark.parametrize(
    "name", ["class_bits_", "seeds_", "training_packed_", "bit_scales_", "dictionary_", "vector_scales_"]
)
def test_file_that_lacks_a_part_is_refused(residual, tmp_path, name):
    header, arrays = residual.pack()
    del header["fitted"][name]
    arrays.pop("fitted." + name, None)
    write_bundle(tmp_path / "bad.star", {"method": "HybridHasher", **header}, arrays)
    with pytest.raises(BundleFormatError, match=f"it lacks {name}"):
        starshl.load(tmp_path / "bad.star")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("class_centers_", lambda array: array[:, 1:]),
        ("bit_scales_", lambda array: array * np.nan),
        ("training_packed_", lambda array: array[:, 1:]),
        ("dictionary_", lambda array: array[:, 1:]),
        ("dictionary_", lambda array: array[::-1]),
        ("dictionary_", lambda array: array * np.nan),
        ("dictionary_", lambda array: np.vstack([array] * 3)),
        ("vector_scales_", lambda array: -array),
        ("vector_scales_", lambda array: array[0]),
        ("hamming_codewords_", lambda array: array[1:]),
        ("hamming_codewords_", lambda array: 0 * array),
    ],
)
def test_file_with_impossible_arrays_is_refused(residual, tmp_path, name, change):
    header, arrays = residual.pack()
    arrays["fitted." + name] = np.ascontiguousarray(change(arrays["fitted." + name]))
    write_bundle(tmp_path / "bad.star", {"method": "HybridHasher", **header}, arrays)
    with pytest.raises(BundleFormatError, match="damaged"):
        starshl.load(tmp_path / "bad.star")


def test_prepared_hybrid_searches_its_own_index(digits, tmp_path):
    X, y = digits
    prepared = PreparedHasher([Scale()], HybridHasher(24, class_hasher=StarRidge(kernels="scaled"))).fit(X, y)
    prepared.save(tmp_path / "prepared.star")
    assert read_bundle(tmp_path / "prepared.star")[0]["hasher"]["method"] == "HybridHasher"
    loaded = starshl.load(tmp_path / "prepared.star")
    codes = loaded.encode_database(X, y)
    assert codes == prepared.encode_database(X, y)
    assert isinstance(make_index(codes, hasher=loaded), HybridIndex)
    assert loaded.encode_queries(X).codes == loaded.encode(X)
    assert loaded.hamming_codes(codes) == prepared.hamming_codes(codes)
    by_vectors = PreparedHasher([Scale()], Quick(n_bits=24, form="residual")).fit(X, y)
    queries = by_vectors.encode_queries(X[:3])
    assert queries.codes.space_id == by_vectors.space_id_
    assert np.array_equal(queries.vectors, by_vectors.prepare(X[:3]))
    index = make_index(by_vectors.encode_database(X, y), hasher=by_vectors)
    assert (index.search(queries, 10).ids == np.arange(3)[:, None]).any(axis=1).all()
    by_bits = PreparedHasher([Scale()], ITQ(24, random_state=0)).fit(X)
    assert isinstance(by_bits.make_index(by_bits.encode_database(X)), FlatIndex)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_collection_searches_by_class_and_neighbors(form, digits, tmp_path):
    X, y = digits
    ridge = StarRidge(kernels="scaled", random_state=0)
    hybrid = HybridHasher(24, class_hasher=ridge, form=form, random_state=0).fit(X[:400], y[:400])
    labels = [int(label) if i % 2 else None for i, label in enumerate(y[:400])]
    with Collection.create(tmp_path / "items", hybrid) as items:
        items.add(X[:100], labels=labels[:100])
        items.add(X[100:400], labels=labels[100:])
        expected = hybrid.encode_database(X[:400], np.array([-1 if label is None else label for label in labels]))
        assert items.codes(range(400)) == expected
        found = items.search(X[400:], k=10)
        explained = items.explain(X[400:401], found[0])
        items.set_labels([1], [3])
        assert class_numbers(items.codes([1]), 6)[0] == 3
        items.set_labels([1], None)
        assert items.codes([1]) == hybrid.encode_database(X[1:2])
    by_index = make_index(expected, hasher=hybrid).search(hybrid.encode_queries(X[400:]), 10)
    assert [[hit.id for hit in hits] for hits in found] == by_index.ids.tolist()
    assert [[hit.distance for hit in hits] for hits in found] == by_index.distances.tolist()
    assert len(explained) == 10
    with Collection(tmp_path / "items", read_only=True) as items:
        assert [hit.id for hit in items.search(X[400:401], k=10)[0]] == by_index.ids[0].tolist()


def test_sparse_rows_get_the_codes_of_dense_ones(hasher, digits):
    assert hasher.encode(csr_array(digits[0])) == hasher.encode(digits[0])
    assert isinstance(hasher.encode(digits[0][:1]), BinaryCodes)


def test_too_many_bits_are_refused_with_the_number_that_is_left_for_neighbors():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 4
    with pytest.raises(ValueError, match=r"n_bits is 8.*at most 3 here"):
        HybridHasher(8, random_state=0).fit(X, y)
