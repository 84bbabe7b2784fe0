"""Crafted model files with a valid checksum: whatever a learned array holds, loading refuses it or is harmless."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import starshl
from starshl import StarRidge
from starshl._common.bundle import read_bundle, write_bundle
from starshl.exceptions import BundleFormatError
from starshl.hashers.baselines import (
    BoostSSC,
    CGHash,
    CodewordSVM,
    ForgivingHash,
    KMeansHash,
    LSHash,
    ParamSensitiveHash,
    RaBitQ,
    SpectralHash,
)

INDEXED = {
    "features_": [
        LSHash(8, variant="bit_sampling", random_state=0),
        BoostSSC(8, n_pairs=500, random_state=0),
        ParamSensitiveHash(8, n_pairs=500, random_state=0),
        ForgivingHash(8, max_iter=5, pool=1, random_state=0),
    ],
    "directions_": [SpectralHash(8)],
    "bits_": [KMeansHash(8)],
    "sizes_": [KMeansHash(8)],
}
CASES = [(hasher, name) for name, hashers in INDEXED.items() for hasher in hashers]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


def rewrite(path, change):
    """Change header and arrays in place and seal the file again."""
    header, arrays = read_bundle(path)
    del header["format"]
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    write_bundle(path, header, arrays)


@pytest.mark.parametrize("index", [-1, -(2**62), 64, 10**6, 2**62])
@pytest.mark.parametrize(("hasher", "name"), CASES, ids=lambda case: getattr(case, "__name__", type(case).__name__))
def test_indices_out_of_range_are_refused(hasher, name, index, digits, tmp_path):
    path = tmp_path / "model.star"
    hasher.fit(*digits).save(path)
    rewrite(path, lambda header, arrays: arrays[f"fitted.{name}"].reshape(-1).__setitem__(0, index))
    with pytest.raises(BundleFormatError):
        starshl.load(path)


@pytest.mark.parametrize("name", ["features_", "thresholds_", "votes_"])
def test_stumps_of_different_shapes_are_refused(name, digits, tmp_path):
    path = tmp_path / "model.star"
    ForgivingHash(8, max_iter=5, pool=1, random_state=0).fit(*digits).save(path)

    def shorten(header, arrays):
        arrays[f"fitted.{name}"] = arrays[f"fitted.{name}"][:, :1]

    rewrite(path, shorten)
    with pytest.raises(BundleFormatError, match="stumps"):
        starshl.load(path)


@pytest.mark.parametrize("name", ["n_bits_", "n_features_in_"])
@pytest.mark.parametrize("size", [0, -1, 10**15, 2.0, True, "64", None])
def test_impossible_sizes_are_refused_before_anything_is_allocated(name, size, digits, tmp_path):
    path = tmp_path / "model.star"
    LSHash(8, random_state=0).fit(*digits).save(path)
    rewrite(path, lambda header, arrays: header["fitted"][name].update(value=size))
    with pytest.raises(BundleFormatError, match=name):
        starshl.load(path)


def test_indices_as_floats_are_refused(digits, tmp_path):
    path = tmp_path / "model.star"
    ForgivingHash(8, max_iter=5, pool=1, random_state=0).fit(*digits).save(path)

    def as_floats(header, arrays):
        arrays["fitted.features_"] = arrays["fitted.features_"].astype(np.float64)
        header["fitted"]["features_"]["dtype"] = "<f8"

    rewrite(path, as_floats)
    with pytest.raises(BundleFormatError, match="features_ must hold indices"):
        starshl.load(path)


BESIDE_THE_SCORES = [
    (RaBitQ(), "mean_"),
    (BoostSSC(4, n_pairs=200, random_state=0), "bit_weights_"),
    (CGHash(4, max_triplets=100, random_state=0), "bit_weights_"),
    (CodewordSVM(4, random_state=0), "codewords_"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("hasher", "name"), BESIDE_THE_SCORES, ids=lambda case: getattr(case, "__name__", str(case)))
def test_arrays_that_scores_do_not_use_are_checked_too(hasher, name, digits, tmp_path):
    path, key = tmp_path / "model.star", f"fitted.{name}"
    hasher.fit(digits[0][:60], digits[1][:60]).save(path)
    rewrite(path, lambda header, arrays: arrays.update({key: arrays[key][:1]}))
    with pytest.raises(BundleFormatError, match=f"{name} must hold finite numbers"):
        starshl.load(path)


RIDGE_ARRAYS = {
    "codewords_": 3,
    "kernel_weights_": np.nan,
    "intercept_": np.inf,
    "dual_coef_": np.nan,
    "class_shifts_": np.nan,
    "training_scores_": np.inf,
    "support_": 10**9,
    "assignments_": -1,
}


@pytest.fixture(scope="module")
def sealed_ridge(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("ridge") / "model.star"
    StarRidge(4, random_state=0).fit(digits[0][:60], digits[1][:60]).save(path)
    return path.read_bytes()


@pytest.fixture
def ridge_file(sealed_ridge, tmp_path):
    path = tmp_path / "model.star"
    path.write_bytes(sealed_ridge)
    return path


@pytest.mark.parametrize(("name", "value"), RIDGE_ARRAYS.items())
def test_impossible_entries_of_a_star_ridge_are_refused(ridge_file, name, value):
    rewrite(ridge_file, lambda header, arrays: arrays[f"fitted.{name}"].reshape(-1).__setitem__(0, value))
    with pytest.raises(BundleFormatError, match=f"its {name} does not match"):
        starshl.load(ridge_file)


@pytest.mark.parametrize("name", [*RIDGE_ARRAYS, "labeled_", "transduction_", "classes_"])
def test_shortened_arrays_of_a_star_ridge_are_refused(ridge_file, name):
    rewrite(ridge_file, lambda header, arrays: arrays.update({f"fitted.{name}": arrays[f"fitted.{name}"][:-1]}))
    with pytest.raises(BundleFormatError):
        starshl.load(ridge_file)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature_", 0.0),
        ("sharpness_", "keen"),
        ("ridge_", 0.0),
        ("curvature_", -1.0),
        ("head_", "wooden"),
        ("codebook_seed_", -5),
        ("n_bits_", 5),
        ("sample_kind_", "objects"),
    ],
)
def test_impossible_values_of_a_star_ridge_are_refused(ridge_file, name, value):
    rewrite(ridge_file, lambda header, arrays: header["fitted"][name].update(value=value))
    with pytest.raises(BundleFormatError):
        starshl.load(ridge_file)


def test_support_rows_that_are_no_numbers_are_refused(ridge_file):
    rewrite(ridge_file, lambda header, arrays: arrays["support.samples"].reshape(-1).__setitem__(0, np.nan))
    with pytest.raises(BundleFormatError, match="support_samples_"):
        starshl.load(ridge_file)


def test_number_of_training_rows_that_nothing_backs_is_refused(ridge_file):
    rewrite(ridge_file, lambda header, arrays: header.update(n_train=10**12))
    with pytest.raises(BundleFormatError):
        starshl.load(ridge_file)


@pytest.mark.parametrize("hasher", [StarRidge(4, random_state=0), CodewordSVM(4, random_state=0)], ids=str)
def test_codebook_that_does_not_match_the_codewords_is_refused(hasher, digits, tmp_path):
    path = tmp_path / "model.star"
    hasher.fit(digits[0][:60], digits[1][:60]).save(path)
    rewrite(path, lambda header, arrays: arrays.update({"fitted.codebook_.words": -arrays["fitted.codebook_.words"]}))
    with pytest.raises(BundleFormatError, match="codebook"):
        starshl.load(path)


@pytest.mark.parametrize("damage", [{"space_id": 99}, {"space_id": "here"}, {"fit_digest": 7}, {"words": None}, {}])
def test_damaged_codebook_in_a_model_file_is_refused(damage, ridge_file):
    def spoil(header, arrays):
        spec = header["fitted"]["codebook_"]["values"]
        for name, value in damage.items():
            spec[name] = {"kind": "value", "value": value}
        if not damage:
            del spec["classes"]

    rewrite(ridge_file, spoil)
    with pytest.raises(BundleFormatError, match="codebook"):
        starshl.load(ridge_file)
