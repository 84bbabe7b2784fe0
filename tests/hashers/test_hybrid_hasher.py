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
        n_bits=8,
        class_hasher=None,
        neighbor_hasher=None,
        form="hamming",
        class_first=10,
        class_weight=None,
        n_jobs=None,
        random_state=0,
    ):
        super().__init__(
            n_bits,
            class_hasher=class_hasher,
            neighbor_hasher=neighbor_hasher,
            form=form,
            class_first=class_first,
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


def test_code_is_the_number_of_the_class_and_the_neighbor_code(hasher, digits):
    codes = hasher.encode(digits[0])
    assert hasher.class_bits_ == 4
    assert hasher.n_bits_ == codes.n_bits == 24
    predicted = hasher.predict(digits[0])
    assert np.array_equal(hasher.classes_[class_numbers(codes, 4)], predicted)
    assert np.array_equal(predicted, hasher.class_hasher_.predict(digits[0]))
    assert np.array_equal(codes.to_signs()[:, 4:], hasher.neighbor_hasher_.encode(digits[0]).to_signs())


def test_items_have_the_class_of_their_label_where_it_is_known(hasher, digits):
    X, y = digits[0][400:], digits[1][400:].copy()
    y[::3], y[1] = -1, 77
    own, items = hasher.encode(X), hasher.encode_database(X, y)
    known = (y >= 0) & (y < 10)
    assert np.array_equal(class_numbers(items, 4)[known], y[known])
    assert items[np.flatnonzero(~known)] == own[np.flatnonzero(~known)]
    assert np.array_equal(items.to_signs()[:, 4:], own.to_signs()[:, 4:])
    assert hasher.relabel(own, y) == items


@pytest.mark.parametrize(("n_classes", "n_class_bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_class_field_is_as_short_as_possible(digits, n_classes, n_class_bits):
    rows = digits[1] < n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one class
        fitted = Quick(n_bits=12).fit(digits[0][rows], digits[1][rows])
    assert fitted.class_bits_ == n_class_bits
    assert fitted.neighbor_hasher_.n_bits_ == 12 - n_class_bits


def test_field_that_is_too_short_is_shared_with_a_warning(digits):
    with pytest.warns(UserWarning, match="10 classes need 4 bits"):
        fitted = Quick(n_bits=3).fit(*digits)
    assert fitted.neighbor_hasher_ is None
    assert np.array_equal(class_numbers(fitted.encode_database(*digits), 3), digits[1] % 8)


def test_search_finds_near_items_of_the_right_class(hasher, digits):
    X, y = digits
    items = hasher.encode_database(X[:400], y[:400])
    index = make_index(items, hasher=hasher)
    assert isinstance(index, HybridIndex)
    assert (index.class_bits, index.class_weight, index.class_first) == (4, hasher.class_weight_, 10)
    ids = index.search(hasher.encode_queries(X[400:]), 10).ids
    neighbors = ITQ(24, random_state=0).fit(X[:400])
    plain = make_index(neighbors.encode(X[:400])).search(neighbors.encode(X[400:]), 10).ids
    right = y[400:, None]
    assert np.mean(y[ids] == right) > np.mean(y[plain] == right) + 0.05
    assert len(np.unique(items.packed, axis=0)) > 300
    # Every digit has ten items, so the first ten have the predicted class.
    assert (y[ids] == hasher.predict(X[400:])[:, None]).all()


def test_float_queries_find_more_near_vectors_with_the_same_codes(residual, hasher, digits):
    X, y = digits
    items = residual.encode_database(X[:400], y[:400])
    assert items == hasher.encode_database(X[:400], y[:400])
    queries = residual.encode_queries(X[400:])
    assert queries.codes == hasher.encode_queries(X[400:])
    index = make_index(items, hasher=residual)
    assert isinstance(index, ResidualIndex)
    by_vectors, by_codes = index.search(queries, 20).ids, make_index(items, hasher=hasher).search(queries.codes, 20).ids
    assert (y[by_vectors[:, :10]] == residual.predict(X[400:])[:, None]).all()
    nearest = nearest_rows(X[400:], X[:400], 5)
    recalls = [
        np.mean([np.isin(near, found).mean() for near, found in zip(nearest, ids, strict=True)])
        for ids in (by_vectors, by_codes)
    ]
    assert recalls[0] > recalls[1] + 0.02


def test_codes_stand_for_the_least_squares_reconstruction():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = rng.standard_normal((60, 8)) + 2 * y[:, None]
    fitted = Quick(n_bits=8, form="residual").fit(X, y)
    codes = fitted.encode_database(X, y)
    steps = codes.to_signs()[:, 2:, None] * fitted.neighbor_hasher_.components_  # one column per scale
    membership = np.kron(np.eye(3)[y], np.eye(8)).reshape(60, 8, 24)
    design = np.concatenate([steps.transpose(0, 2, 1), membership], axis=2).reshape(480, 30)
    best = np.linalg.lstsq(design, X.ravel(), rcond=None)[0]
    assert np.allclose(fitted.bit_scales_, best[:6], atol=1e-6)
    assert np.allclose(fitted.class_centers_, best[6:].reshape(3, 8), atol=1e-6)
    vectors = fitted.make_index(codes).reconstruction.vectors(codes)
    assert np.allclose(vectors.ravel(), design @ best, atol=1e-6)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_with_bits_gives_what_a_fit_of_that_length_gives(form, digits):
    X, y = digits
    fitted = Quick(n_bits=12, form=form).fit(X[:300], y[:300])
    longer, own = fitted.with_bits(24), Quick(n_bits=24, form=form).fit(X[:300], y[:300])
    assert longer.class_hasher_ is fitted.class_hasher_
    assert (longer.n_bits, longer.n_bits_, fitted.n_bits_) == (24, 24, 12)
    assert longer.encode(X) == own.encode(X)
    assert longer.class_weight_ == own.class_weight_
    assert longer.training_codes_ == own.training_codes_
    found = [each.make_index(own.training_codes_).search(each.encode_queries(X[300:]), 9) for each in (longer, own)]
    assert np.allclose(found[0].distances, found[1].distances, atol=1e-9)
    assert not hasattr(HybridHasher(class_hasher=SDH(8, random_state=0)), "with_bits")


def test_training_codes_hold_labels_and_guesses_without_the_row(digits):
    X, y = digits[0][:300], digits[1][:300].copy()
    y[::4] = -1
    fitted = Quick(n_bits=16).fit(X, y)
    codes = fitted.training_codes_
    given = fitted.encode_database(X, y)
    assert codes[np.flatnonzero(y >= 0)] == given[np.flatnonzero(y >= 0)]
    ridge = fitted.class_hasher_
    guesses = ridge._bend(ridge.training_scores_).argmax(axis=1)
    assert np.array_equal(class_numbers(codes, 4)[::4], guesses[::4])
    assert np.array_equal(codes.to_signs()[:, 4:], given.to_signs()[:, 4:])


def test_weight_without_items_of_the_class_in_front_is_chosen_by_precision(digits):
    fitted = Quick(n_bits=24, class_first=0).fit(digits[0][:400], digits[1][:400])
    assert fitted.class_weight_ >= 2
    assert fitted.make_index(fitted.training_codes_).class_first == 0


def test_a_given_weight_is_kept(digits):
    assert Quick(n_bits=16, class_weight=9).fit(*digits).class_weight_ == 9
    assert Quick(n_bits=16, form="residual", class_weight=1.5).fit(*digits).class_weight_ == 1.5
    for settings, message in (
        ({"class_weight": -1}, "class_weight is -1"),
        ({"class_weight": 1.5}, "class_weight is 1.5"),
        ({"class_weight": -1.0, "form": "residual"}, "class_weight is -1.0"),
        ({"class_first": -1}, "class_first is -1"),
        ({"form": "float"}, "form is 'float'"),
        ({"form": "residual", "neighbor_hasher": SpectralHash()}, "SpectralHash, whose bits are not"),
    ):
        with pytest.raises(ValueError, match=message):
            Quick(**settings).fit(*digits)


def test_without_labels_the_field_holds_a_cluster(digits):
    X, y = digits
    fitted = Quick(n_bits=24).fit(X)
    assert fitted.field_holds_ == "clusters"
    assert len(fitted.classes_) <= 2**fitted.class_bits_
    clusters = fitted.predict(X)
    purity = sum(np.bincount(y[clusters == c]).max() for c in np.unique(clusters)) / len(y)
    assert purity > 0.8
    # A label is not the number of a cluster.
    assert fitted.encode_database(X, y) == fitted.encode(X)
    assert not hasattr(fitted, "relabel")


def test_given_hashers_are_used_and_left_alone(digits, tmp_path):
    ridge, lsh = StarRidge(8, kernels="scaled", random_state=3), LSHash(99, random_state=5)
    fitted = HybridHasher(20, class_hasher=ridge, neighbor_hasher=lsh).fit(*digits)
    assert not hasattr(ridge, "n_bits_")
    assert lsh.n_bits == 99
    assert np.array_equal(
        fitted.encode(digits[0]).to_signs()[:, 4:], LSHash(16, random_state=5).fit_transform(digits[0])
    )
    fitted.save(tmp_path / "hybrid.star")
    loaded = starshl.load(tmp_path / "hybrid.star")
    assert loaded.encode(digits[0]) == fitted.encode(digits[0])
    assert clone(loaded).fit(*digits).encode(digits[0]) == fitted.encode(digits[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_hasher": ITQ()}, "class_hasher is ITQ"),
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
    ("name", "value"), [("class_bits_", 5), ("class_bits_", 0), ("class_weight_", -1), ("class_weight_", 1.5)]
)
def test_file_whose_parts_do_not_fit_is_refused(hasher, tmp_path, name, value):
    header, arrays = hasher.pack()
    header["fitted"][name] = {"kind": "value", "value": value}
    write_bundle(tmp_path / "bad.star", {"method": "HybridHasher", **header}, arrays)
    with pytest.raises(BundleFormatError, match="do not fit together"):
        starshl.load(tmp_path / "bad.star")


@pytest.mark.parametrize("name", ["class_bits_", "seeds_", "training_packed_", "bit_scales_", "distance_unit_"])
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
    assert loaded.encode_queries(X) == loaded.encode(X)
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
        assert class_numbers(items.codes([1]), 4)[0] == 3
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
