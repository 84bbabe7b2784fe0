"""Probabilities from the command line: beside labels, in tables and in array files."""

import csv

import numpy as np
import pytest

from starshl import StarRidge, load


@pytest.fixture(scope="module")
def expected(files, blobs):
    hasher = load(files / "named.safetensors")
    return hasher.predict_proba(blobs[0])


def test_a_label_comes_with_its_probability(files, expected, starshl):
    lines = starshl("predict", files / "named.safetensors", files / "blobs.csv", "--proba").stdout.splitlines()
    assert lines == [f"{'xyz'[row.argmax()]}\t{row.max():.4f}" for row in expected]


def test_json_holds_the_probabilities_of_all_classes(files, expected, answer):
    result = answer("predict", files / "named.safetensors", files / "blobs.csv", "--proba", "--labels", "kind")
    assert result["classes"] == ["x", "y", "z"]
    np.testing.assert_allclose(result["probabilities"], expected)
    np.testing.assert_allclose(result["confidence"], expected.max(axis=1))
    assert result["mean_confidence"] == pytest.approx(expected.max(axis=1).mean())
    assert result["accuracy"] == 1.0


def test_a_table_has_a_column_for_every_class(files, expected, tmp_path, answer):
    answer("predict", files / "named.safetensors", files / "blobs.csv", "--proba", "-o", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["label", "confidence", "p_x", "p_y", "p_z"]
    np.testing.assert_allclose([[float(row[f"p_{name}"]) for name in "xyz"] for row in rows], expected)
    assert [row["label"] for row in rows] == ["xyz"[column] for column in expected.argmax(axis=1)]


def test_an_array_file_has_labels_classes_and_probabilities(files, expected, tmp_path, answer):
    answer("predict", files / "named.safetensors", files / "blobs.csv", "--proba", "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as file:
        assert file["classes"].tolist() == ["x", "y", "z"]
        np.testing.assert_array_equal(file["proba"], expected)
        assert (file["label"] == file["classes"][expected.argmax(axis=1)]).all()


def test_the_accuracy_is_told_beside_the_mean_confidence(files, expected, starshl):
    told = starshl("predict", files / "named.safetensors", files / "blobs.csv", "--proba", "-l", "kind").stderr
    assert f"labeled rows given (mean confidence {expected.max(axis=1).mean():.4f});" in told


def test_it_is_said_where_too_few_labels_tell_how_right_probabilities_are(files, blobs, starshl, tmp_path):
    X, y = blobs
    few = np.where(np.isin(np.arange(len(y)), [np.flatnonzero(y == own)[0] for own in np.unique(y)]), y, -1)
    StarRidge(16, random_state=0).fit(X, few).save(tmp_path / "few.star")
    words = "Too few labels were given to tell how right probabilities are."
    assert words in starshl("predict", tmp_path / "few.star", files / "blobs.npz", "--proba").stderr
    assert words not in starshl("predict", tmp_path / "few.star", files / "blobs.npz").stderr
    assert words not in starshl("predict", files / "named.safetensors", files / "blobs.csv", "--proba").stderr


def test_a_method_without_probabilities_says_so(files, tmp_path, starshl):
    assert starshl("fit", files / "blobs.npz", "-m", "StarSHL", "-b", 6, "-o", tmp_path / "m").exit_code == 0
    refused = starshl("predict", tmp_path / "m", files / "blobs.npz", "--proba")
    assert (refused.exit_code, "works without probabilities of classes" in refused.stderr) == (
        2,
        True,
    )
