"""`starshl export` writes what the library would, says how long a row takes, and leaves nothing half-written."""

import numpy as np
import onnxruntime
import pytest

from starshl import Collection, StarRidge, load


def test_an_onnx_file_gives_the_codes_of_the_model(files, blobs, tmp_path, answer):
    result = answer("export", files / "model.safetensors", "--onnx", tmp_path / "m.onnx", "--outputs", "codes,label")
    hasher = load(files / "model.safetensors")
    codes, labels = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"X": blobs[0]})
    np.testing.assert_array_equal(codes, hasher.encode(blobs[0]).packed)
    np.testing.assert_array_equal(labels, hasher.predict(blobs[0]))
    assert result["file_bytes"] == (tmp_path / "m.onnx").stat().st_size
    assert min(result["onnx_ms"], result["encode_ms"]) > 0


def test_the_answer_in_text_says_how_long_one_row_takes(files, tmp_path, starshl):
    result = starshl("export", files / "named.safetensors", "--onnx", tmp_path / "m.onnx", "--precision", "float32")
    assert result.stdout.startswith("StarRidge, 10 bits, ")
    assert "ms in onnxruntime on one thread" in result.stdout
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.get_inputs()[0].type == "tensor(float)"


def test_the_model_of_a_collection_can_be_exported(blobs, tmp_path, answer):
    X, y = blobs
    Collection.create(tmp_path / "items", StarRidge(8, random_state=0).fit(X, y)).close()
    assert answer("export", tmp_path / "items", "--onnx", tmp_path / "m.onnx")["n_bits"] == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--onnx", "m.onnx", "--outputs", "bits"), "choose one or more"),
        (("--onnx", "m.onnx", "--precision", "half"), "float64"),
        (("--onnx", "m.bin"), "it may be .onnx"),
        (("--onnx", "absent/m.onnx"), "There is no folder"),
        ((), "Give --onnx FILE"),
        (("--page", "page.html"), "not the folder"),
        (("--page", "page.htm"), "it may be .html"),
        (("--page", "page.html", "--picture", "28"), "such as 28x28"),
    ],
)
def test_bad_requests_are_refused_and_leave_no_file(words, said, files, tmp_path, monkeypatch, starshl):
    monkeypatch.chdir(tmp_path)
    result = starshl("export", files / "model.safetensors", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_no_model_is_refused(tmp_path, starshl):
    (tmp_path / "model.star").write_bytes(b"junk")
    result = starshl("export", tmp_path / "model.star", "--onnx", tmp_path / "m.onnx")
    assert "not a readable model file" in result.stderr
    assert not (tmp_path / "m.onnx").exists()


def test_an_output_that_is_the_model_is_refused(files, tmp_path, starshl):
    model = tmp_path / "model.onnx"
    model.write_bytes((files / "model.safetensors").read_bytes())
    assert "same file as the input" in starshl("export", model, "--onnx", model).stderr
    assert load(model).n_bits_ == 10


def test_a_page_of_a_collection_is_written_and_described(blobs, tmp_path, starshl, answer):
    X, y = blobs
    for name in ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"):
        (tmp_path / name).write_bytes(b"a runtime")
    with Collection.create(tmp_path / "items", StarRidge(8, random_state=0).fit(X, y)) as items:
        items.add(X, labels=y)
    words = ("export", tmp_path / "items", "--page", tmp_path / "page.html", "--runtime", tmp_path)
    result = answer(*words, "--title", "Clouds", "--picture", "1x3")["page"]
    assert (result["n_items"], result["encodes"], result["picture"]["width"]) == (60, True, 3)
    assert "<h1>Clouds</h1>" in (tmp_path / "page.html").read_text()
    said = starshl(*words, "--progress").stdout
    assert said == f"60 items, {(tmp_path / 'page.html').stat().st_size:,} bytes: {tmp_path / 'page.html'}\n"
