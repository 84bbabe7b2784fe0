"""Several code lengths from one command: one model file each, all of them or none."""

import os

import numpy as np
import pytest

from starshl import StarRidge, load
from starshl.cli import hashers
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash


def test_every_length_gets_the_file_that_a_fit_of_its_own_would_write(files, tmp_path, answer):
    result = answer("fit", files / "blobs.npz", "--bits", "8,16,24", "-o", tmp_path / "m.star")
    names = ["m.8.star", "m.16.star", "m.24.star"]
    assert [model["model"] for model in result["models"]] == [str(tmp_path / name) for name in names]
    assert [model["n_bits"] for model in result["models"]] == [8, 16, 24]
    assert "model" not in result
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    for n_bits in (8, 16, 24):
        one = answer("fit", files / "blobs.npz", "--bits", n_bits, "-o", tmp_path / "one.star")
        assert (tmp_path / "one.star").read_bytes() == (tmp_path / f"m.{n_bits}.star").read_bytes()
        assert one["models"] == [{name: one[name] for name in one["models"][0]}]


def test_one_fit_serves_all_lengths_of_star_ridge(files, tmp_path, monkeypatch, answer):
    fitted, fit = [], StarRidge.fit
    monkeypatch.setattr(StarRidge, "fit", lambda hasher, *data: fitted.append(hasher.n_bits) or fit(hasher, *data))
    answer("fit", files / "blobs.npz", "--bits", "8,16,24", "--scale", "-o", tmp_path / "m.star")
    assert fitted == [8]
    assert [load(tmp_path / f"m.{n}.star").n_bits for n in (8, 16, 24)] == [8, 16, 24]


def test_other_methods_are_fitted_once_per_length(files, blobs, tmp_path, answer):
    answer("fit", files / "blobs.npz", "-m", "LSHash", "--bits", "4,6", "-o", tmp_path / "model")
    for n_bits in (4, 6):
        expected = LSHash(n_bits, random_state=0).fit(blobs[0])
        assert load(tmp_path / f"model.{n_bits}").encode(blobs[0]) == expected.encode(blobs[0])


def test_preprocessing_is_in_the_model_of_every_length(files, blobs, tmp_path, answer):
    for method, n_bits in (("StarRidge", 8), ("LSHash", 6)):
        answer(
            "fit", files / "blobs.csv", "-l", "kind", "-m", method, "--scale", "-b", f"4,{n_bits}", "-o", tmp_path / "m"
        )
        loaded = load(tmp_path / f"m.{n_bits}")
        assert isinstance(loaded, PreparedHasher)
        assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
        assert loaded.encode(blobs[0]).n_bits == n_bits


def test_a_length_that_cannot_be_saved_leaves_no_file(files, tmp_path, monkeypatch, starshl):
    def fail(hasher, path):
        if hasher.n_bits == 16:
            raise OSError("the disk is full")
        return save(hasher, path)

    save = StarRidge.save
    (tmp_path / "m.8.star").write_text("an older model")
    monkeypatch.setattr(StarRidge, "save", fail)
    result = starshl("fit", files / "blobs.npz", "--bits", "8,16", "-o", tmp_path / "m.star")
    assert (result.exit_code, "the disk is full" in result.stderr) == (2, True)
    assert os.listdir(tmp_path) == ["m.8.star"]
    assert (tmp_path / "m.8.star").read_text() == "an older model"


def test_no_length_overwrites_the_input(blobs, tmp_path, starshl):
    X, y = blobs
    np.savez(tmp_path / "rows.16.npz", X=X, y=y)
    before = (tmp_path / "rows.16.npz").read_bytes()
    result = starshl("fit", tmp_path / "rows.16.npz", "--bits", "8,16", "-o", tmp_path / "rows.npz")
    assert (result.exit_code, "would overwrite" in result.stderr) == (2, True)
    assert (tmp_path / "rows.16.npz").read_bytes() == before


def test_several_lengths_are_told_in_one_sentence(files, tmp_path, starshl):
    told = starshl("fit", files / "blobs.npz", "--bits", "8,16,24", "-o", tmp_path / "m.star").stdout
    assert told.startswith("StarRidge learned 8, 16 and 24 bits from 3 features")
    assert all(f"m.{n_bits}.star (" in told for n_bits in (8, 16, 24))


@pytest.mark.parametrize(("text", "meant"), [("32", (32,)), ("8, 16", (8, 16)), ("64,8", (64, 8))])
def test_lengths_are_read_as_written(text, meant):
    assert hashers.parse_lengths(text) == meant
