"""None of these from the command line: blank labels and how new a row looks."""

import csv

import numpy as np
import pytest

from starshl import load


@pytest.fixture(scope="module")
def strange(files, blobs, tmp_path_factory):
    """The clouds and two rows far away from them, as a table and as an array."""
    folder = tmp_path_factory.mktemp("strange")
    X = np.vstack([blobs[0], [[90.0, -70.0, 80.0], [-60.0, 50.0, 40.0]]])
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    (folder / "rows.csv").write_text("\n".join(["a,b,c", *lines]) + "\n")
    return folder / "rows.csv", load(files / "named.safetensors").novelty(X)


def test_rows_of_no_class_get_a_blank_label(files, strange, starshl):
    rows, novelty = strange
    lines = starshl("predict", files / "named.safetensors", rows, "--reject", 0.02).stdout.splitlines()
    assert [line.split("\t")[1] for line in lines] == [f"{share:.4f}" for share in novelty]
    assert [not line.split("\t")[0] for line in lines] == (novelty >= 0.98).tolist()
    assert [line.split("\t")[0] for line in lines[-2:]] == ["", ""]


def test_json_says_null_and_how_many(files, strange, answer):
    rows, novelty = strange
    result = answer("predict", files / "named.safetensors", rows, "--reject", 0.02)
    assert result["n_rejected"] == np.sum(novelty >= 0.98) == result["predictions"].count(None)
    np.testing.assert_allclose(result["novelty"], novelty)


def test_a_table_has_novelty_as_its_last_column(files, strange, tmp_path, starshl):
    rows, novelty = strange
    words = ("predict", files / "named.safetensors", rows, "--reject", 0.02, "--proba", "-o", tmp_path / "p.csv")
    assert f"{np.sum(novelty >= 0.98)} of them blank (none of the classes)" in starshl(*words).stdout
    with (tmp_path / "p.csv").open() as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["label", "confidence", "p_x", "p_y", "p_z", "novelty"]
    assert [row["label"] == "" for row in found] == (novelty >= 0.98).tolist()


@pytest.mark.parametrize(("model", "mark"), [("model", -1), ("named", "")])
def test_an_array_marks_rejected_rows_as_unlabeled(model, mark, files, strange, tmp_path, answer):
    words = ("predict", files / f"{model}.safetensors", strange[0], "--reject", 0.02)
    answer(*words, "-o", tmp_path / "labels.npy")
    assert np.load(tmp_path / "labels.npy")[-1] == mark
    answer(*words, "--proba", "-o", tmp_path / "labels.npz")
    with np.load(tmp_path / "labels.npz") as file:
        assert file["label"][-1] == mark
        assert file["novelty"].shape == (62,)


def test_accuracy_is_that_of_rows_that_were_not_rejected(files, starshl):
    told = starshl("predict", files / "named.safetensors", files / "blobs.csv", "--reject", 0.95, "-l", "kind").stderr
    assert "labeled rows given that were not rejected (" in told


@pytest.mark.parametrize(
    ("method", "share", "message"),
    [("ITQ", 0.05, "learns codes, not classes"), (None, 5, "a share from 0")],
)
def test_what_cannot_be_rejected_is_refused(method, share, message, files, tmp_path, starshl):
    model = files / "named.safetensors"
    if method:
        model = tmp_path / "m"
        assert starshl("fit", files / "blobs.npy", "-m", method, "-b", 2, "-o", model).exit_code == 0
    refused = starshl("predict", model, files / "blobs.npy", "--reject", share)
    assert refused.exit_code == 2
    assert message in refused.stderr
