"""`starshl card` prints what travels with a model, and keeps measurements on held-out rows."""

import hashlib

import numpy as np

from starshl import load, model_card


def test_a_card_is_printed_as_markdown_and_as_json(files, starshl, answer):
    result = answer("card", files / "named.safetensors")
    assert result == model_card(load(files / "named.safetensors"))
    assert result["data"]["file"] == "blobs.csv"
    assert result["data"]["file_sha256"] == hashlib.sha256((files / "blobs.csv").read_bytes()).hexdigest()
    assert result["data"]["label_counts"] == {"x": 20, "y": 20, "z": 20}
    page = starshl("card", files / "named.safetensors").stdout
    assert page.startswith("# Model card: StarRidge, 10 bits\n")
    assert "leave-one-out: 60 labeled training rows" in page


def test_a_measurement_is_kept_in_a_new_model_file(files, blobs, tmp_path, answer):
    X, y = blobs
    np.savez(tmp_path / "more.npz", X=X + 0.1, y=y)
    words = ("card", files / "model.safetensors", "--held-out", tmp_path / "more.npz", "-o", tmp_path / "m.star")
    measured = answer(*words)["measured"]
    assert measured[1]["precision_at_10"] == 1.0
    assert measured[1]["how"].startswith("held-out rows: 30 queries among 30 items")
    assert answer("card", tmp_path / "m.star")["measured"] == measured


def test_outputs_that_would_lose_something_are_refused(files, starshl):
    model = files / "model.safetensors"
    assert "Give --held-out" in starshl("card", model, "-o", files / "new.star").stderr
    words = ("card", model, "--held-out", files / "blobs.npz", "-o")
    assert "same file as the input" in starshl(*words, model).stderr
    assert not (files / "new.star").exists()
