"""A compressed HybridHasher makes nearly the same codes, for the same index, with fewer rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import starshl
from starshl import BinaryCodes, HybridHasher, StarRidge
from starshl.data.features import Scale
from starshl.exceptions import MissingCapabilityError
from starshl.hashers import ClassifierHasher, PreparedHasher
from starshl.hashers.star import compression

N_TRAIN, N_KEPT = 400, 60


@pytest.fixture(scope="module")
def data(digits):
    X, y = digits
    return X[:900] / 16.0, y[:900]


@pytest.fixture(scope="module", autouse=True)
def short_descent():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "MIN_STEPS", 1000)
        yield


def make(**settings):
    return HybridHasher(24, class_hasher=StarRidge(kernels="scaled", random_state=0), random_state=0, **settings)


@pytest.fixture(scope="module")
def full(data):
    return make().fit(data[0][:N_TRAIN], data[1][:N_TRAIN])


@pytest.fixture(scope="module")
def small(full):
    return full.compress(N_KEPT)


def test_the_class_part_is_that_of_the_compressed_class_hasher(full, small, data):
    expected = full.class_hasher_.compress(N_KEPT)
    assert len(small.kept_samples) == N_KEPT
    assert len(full.kept_samples) == N_TRAIN
    assert np.array_equal(small.predict_proba(data[0]), expected.predict_proba(data[0]))
    assert full.fit_summary.agreement is None


def test_code_bits_stay_as_far_as_promised_and_neighbor_bits_all(full, small, data):
    new = data[0][N_TRAIN:]
    same = small.encode(new).to_signs() == full.encode(new).to_signs()
    assert same[:, full.class_bits_ :].all()
    assert same.mean() == pytest.approx(small.fit_summary.agreement, abs=0.03)


def test_an_agreement_is_that_of_all_bits(full, small):
    def class_bits(posteriors):
        return BinaryCodes.from_signs(full.words.encode(posteriors))

    with pytest.warns(UserWarning, match="of the code bits stay the same"):
        of_class_bits = full.class_hasher_.compress(N_KEPT, codes_of=class_bits)
    changed = (1 - of_class_bits.agreement_) * full.class_bits_ / full.n_bits_
    assert changed > 0
    assert small.fit_summary.agreement == pytest.approx(1 - changed)


@pytest.mark.parametrize("form", ["hamming", "residual"])
def test_codes_made_before_are_searched_with_the_compressed_hasher(form, data):
    X, y = data
    full = make(form=form).fit(X[:N_TRAIN], y[:N_TRAIN])
    small = full.compress(N_KEPT)
    assert small.space_id_ == full.space_id_
    assert small.training_codes_ == full.training_codes_
    assert small.encode_database(X, y) == full.encode_database(X, y)
    assert small.score_rule == full.score_rule
    index = full.make_index(full.encode_database(X[:N_TRAIN], y[:N_TRAIN]))
    right = [
        (y[index.search(h.encode_queries(X[N_TRAIN:]), 10).ids] == y[N_TRAIN:, None]).mean() for h in (full, small)
    ]
    assert right[0] > 0.85
    assert right[1] > right[0] - 0.02


def test_saved_compressed_hybrid_is_smaller_and_comes_back_the_same(full, small, data, tmp_path):
    full.save(tmp_path / "full.star")
    small.save(tmp_path / "small.star")
    loaded = starshl.load(tmp_path / "small.star")
    assert loaded.encode(data[0]) == small.encode(data[0])
    assert loaded.space_id_ == full.space_id_
    assert loaded.fit_summary.agreement == small.fit_summary.agreement
    saved = (tmp_path / "full.star").stat().st_size - (tmp_path / "small.star").stat().st_size
    assert saved >= full.kept_samples.nbytes - small.kept_samples.nbytes


def test_a_neighbor_hasher_that_keeps_rows_is_compressed_too(data):
    X, y = data
    full = make(neighbor_hasher=StarRidge(n_codewords=30, random_state=0)).fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="of the code bits stay the same"):
        small = full.compress(20)
    assert len(full.neighbor_hasher_.kept_samples) > 20
    assert len(small.neighbor_hasher_.kept_samples) == 20
    assert small.space_id_ == full.space_id_
    n_left, lost = full.neighbor_hasher_.n_bits_, 1 - small.neighbor_hasher_.agreement_
    assert lost > 0
    assert small.fit_summary.agreement == pytest.approx(small.class_hasher_.agreement_ - lost * n_left / full.n_bits_)


def test_further_rows_and_the_seed_reach_the_class_hasher(full, data):
    X = data[0]
    given = full.compress(20, X[N_TRAIN:600], random_state=3)
    assert np.array_equal(given.predict_proba(X), full.class_hasher_.compress(20, X[N_TRAIN:600], 3).predict_proba(X))
    assert not np.array_equal(given.predict_proba(X), full.compress(20).predict_proba(X))


def test_a_prepared_hybrid_is_compressed_behind_its_steps(data, tmp_path):
    X, y = data
    full = PreparedHasher([Scale()], make()).fit(X[:N_TRAIN], y[:N_TRAIN])
    small = full.compress(N_KEPT)
    assert (len(full.kept_samples), len(small.kept_samples)) == (N_TRAIN, N_KEPT)
    assert small.encode(X) == full.with_hasher(full.hasher_.compress(N_KEPT)).encode(X)
    assert small.space_id_ == full.space_id_
    small.save(tmp_path / "small.star")
    assert starshl.load(tmp_path / "small.star").encode(X) == small.encode(X)


def test_what_needs_the_training_rows_is_gone_afterwards(small):
    assert small.supports.isdisjoint({"with_bits", "novelty"})
    assert "training_rows" not in small.class_hasher_.supports
    with pytest.raises(MissingCapabilityError, match="Fit it with the other length"):
        small.require("with_bits")


def test_clusters_are_kept(data):
    full = HybridHasher(16, random_state=0).fit(data[0][:200])
    with pytest.warns(UserWarning, match="of the code bits stay the same"):
        small = full.compress(40)
    assert small.field_holds_ == "clusters"
    assert small.space_id_ == full.space_id_


def test_a_class_hasher_without_training_rows_is_named_in_the_refusal(data):
    X, y = data
    hasher = HybridHasher(16, class_hasher=ClassifierHasher(LogisticRegression(), 8), random_state=0).fit(
        X[:99], y[:99]
    )
    assert not hasattr(hasher, "compress")
    with pytest.raises(MissingCapabilityError, match="ClassifierHasher keeps no training rows to encode with"):
        hasher.require("compress")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_support": 0}, "n_support is 0"),
        ({"n_support": N_TRAIN}, f"this hasher has {N_TRAIN} support rows already"),
        ({"X": np.ones((3, 7))}, "7 features"),
    ],
)
def test_bad_arguments_are_refused(full, arguments, message):
    with pytest.raises(ValueError, match=message):
        full.compress(**arguments)


def test_a_hybrid_must_be_fitted_before():
    with pytest.raises(ValueError, match="not fitted"):
        make().compress()
