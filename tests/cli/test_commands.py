"""The commands do what the library does, and say it in text and in JSON."""

import numpy as np
import pytest
from scipy import sparse

import starshl as package
from starshl import BinaryCodes, StarRidge, StarSHL, load
from starshl.hashers import get_class
from starshl.hashers.catalog import METHODS


def test_fit_saves_what_the_library_would_learn(files, blobs, tmp_path, answer):
    X, y = blobs
    result = answer("fit", files / "blobs.npz", "--bits", 9, "--seed", 3, "-o", tmp_path / "model")
    expected = StarRidge(9, random_state=3).fit(X, y)
    learned = load(tmp_path / "model")
    np.testing.assert_array_equal(learned.decision_function(X), expected.decision_function(X))
    assert (result["method"], result["n_bits"], result["choice"]) == ("StarRidge", 9, expected.choice_)


def test_an_option_of_star_shl_makes_fit_learn_star_shl(files, blobs, tmp_path, answer):
    X, y = blobs
    result = answer("fit", files / "blobs.npz", "--bits", 9, "--C", 2, "--seed", 3, "-o", tmp_path / "model")
    expected = StarSHL(9, C=2.0, random_state=3).fit(X, y)
    learned = load(tmp_path / "model")
    np.testing.assert_array_equal(learned.decision_function(X), expected.decision_function(X))
    assert (result["n_rows"], result["n_labeled"], result["n_features"], result["n_bits"]) == (60, 60, 3, 9)
    assert result["classes"] == [0, 1, 2]
    assert result["objective"] == expected.objective_history_[-1]


def test_fit_prints_what_was_chosen(files, tmp_path, starshl):
    lines = starshl("fit", files / "blobs.npz", "-b", 8, "-o", tmp_path / "m").stdout.splitlines()
    assert lines[0].startswith("StarRidge learned 8 bits from 3 features")
    assert lines[1:] == [load(tmp_path / "m").choice_]


def test_fit_writes_the_same_bytes_for_any_number_of_threads_with_and_without_progress(files, tmp_path, starshl):
    for name, words in {"one": ("--jobs", 1, "--no-progress"), "two": ("--jobs", 2, "--progress")}.items():
        assert starshl("fit", files / "blobs.npz", "-b", 8, "-o", tmp_path / name, *words).exit_code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_fit_takes_the_settings_of_the_paper_and_lets_options_override_them(files, tmp_path, starshl):
    words = ("--paper", "--C", 5, "--set", "max_iter=2", "--set", "codewords=separated")
    assert starshl("fit", files / "blobs.npz", "-b", 8, "-o", tmp_path / "m", *words).exit_code == 0
    learned = load(tmp_path / "m")
    assert (learned.kernels, learned.C, learned.max_iter, learned.codewords) == ("paper", 5.0, 2, "separated")
    assert learned.codeword_constraint == "none"


@pytest.mark.parametrize(("written", "meant"), [("False", False), ("false", False), ("True", True)])
def test_a_setting_may_be_written_as_in_python_or_in_json(written, meant, files, tmp_path, starshl):
    path = tmp_path / "model.star"
    fitted = starshl("fit", files / "blobs.npz", "--bits", 4, "--set", f"update_codewords={written}", "-o", path)
    assert fitted.exit_code == 0, fitted.output
    assert load(path).update_codewords is meant


def test_fit_without_labels_learns_clusters(files, tmp_path, answer):
    result = answer("fit", files / "blobs.npz", "--no-labels", "--n-codewords", 3, "-b", 8, "-o", tmp_path / "m")
    assert (result["n_labeled"], result["classes"]) == (0, [0, 1, 2])


def test_fit_without_labels_suggests_a_number_of_clusters(files, tmp_path, starshl):
    told = starshl("fit", files / "blobs.npz", "--no-labels", "-b", 8, "-o", tmp_path / "m").stdout
    assert told.startswith("StarRidge learned 8 bits")
    assert "is a suggestion: set n_codewords if you know better" in told


def test_fit_with_the_graph_kernel_learns_from_one_label_per_class(files, tmp_path, answer):
    few = np.full(60, -1)
    few[[0, 20, 40]] = [0, 1, 2]
    np.save(tmp_path / "few.npy", few)
    words = ("--labels", tmp_path / "few.npy", "--kernels", "graph", "-b", 8, "-o", tmp_path / "m")
    assert answer("fit", files / "blobs.npy", *words)["n_labeled"] == 3
    assert answer("predict", tmp_path / "m", files / "blobs.npz", "--labels", "y")["accuracy"] == 1.0
    assert answer("info", tmp_path / "m")["kernels"][0]["name"] == "FittedGraphGaussian"


def test_fit_learns_from_precomputed_kernels(blobs, tmp_path, answer):
    X, y = blobs
    np.savez(tmp_path / "gram.npz", X=X @ X.T, y=y)
    answer("fit", tmp_path / "gram.npz", "--kernels", "precomputed", "-b", 8, "-o", tmp_path / "m")
    assert answer("predict", tmp_path / "m", tmp_path / "gram.npz", "--labels", "y")["accuracy"] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_catalog_is_fitted_described_and_encodes(method, files, tmp_path, answer):
    bits = 3 if method == "SignBinarizer" else 2
    answer("fit", files / "blobs.npz", "--method", method, "--bits", bits, "-o", tmp_path / "m")
    assert answer("info", tmp_path / "m")["method"] == method
    assert answer("encode", tmp_path / "m", files / "blobs.npz", "-o", tmp_path / "c.npz")["n_codes"] == 60


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_encode_writes_the_codes_of_the_library(suffix, files, blobs, tmp_path, answer):
    path = tmp_path / f"codes{suffix}"
    result = answer("encode", files / "model.safetensors", files / "blobs.npy", "-o", path)
    expected = load(files / "model.safetensors").encode(blobs[0])
    assert (result["n_codes"], result["n_bits"], result["bytes_per_code"]) == (60, 10, 2)
    if suffix == ".npy":
        codes = BinaryCodes(np.load(path), 10)
    elif suffix == ".npz":
        with np.load(path) as file:
            codes = BinaryCodes(file["packed"], int(file["n_bits"]))
    else:
        assert path.read_text().splitlines()[0].split(",")[::9] == ["bit_0", "bit_9"]
        codes = BinaryCodes.from_signs(np.loadtxt(path, delimiter=",", skiprows=1))
    assert codes == expected


def test_encode_keeps_labels_beside_the_codes(files, blobs, tmp_path, starshl):
    words = ("encode", files / "named.safetensors", files / "blobs.csv", "--labels", "kind", "-o", tmp_path / "c.npz")
    assert starshl(*words).exit_code == 0
    with np.load(tmp_path / "c.npz", allow_pickle=False) as file:
        assert "".join(file["y"]) == "".join("xyz"[label] for label in blobs[1])


def test_predict_prints_one_label_per_line_and_the_accuracy_apart(files, starshl):
    result = starshl("predict", files / "named.safetensors", files / "blobs.csv", "--labels", "kind")
    assert result.stdout.split() == ["x"] * 20 + ["y"] * 20 + ["z"] * 20
    assert result.stderr.startswith("accuracy 1.0000 on the 60 labeled rows given; the model was trained on at least ")


def test_predict_says_whether_the_model_was_trained_on_the_rows(files, blobs, tmp_path, starshl, answer):
    X, y = blobs
    np.savez(tmp_path / "new.npz", X=X + 0.01, y=y)
    model = files / "model.safetensors"
    assert answer("predict", model, files / "blobs.npz", "--labels", "y")["n_training_rows"] > 0
    assert answer("predict", model, tmp_path / "new.npz", "--labels", "y")["n_training_rows"] == 0
    new = starshl("predict", model, tmp_path / "new.npz", "--labels", "y").stderr
    assert new == "accuracy 1.0000 on the 60 labeled rows given\n"


def test_predict_knows_training_rows_behind_preprocessing(files, tmp_path, starshl, answer):
    answer("fit", files / "blobs.csv", "--labels", "kind", "--scale", "-b", 8, "-o", tmp_path / "scaled.star")
    lines = (files / "blobs.csv").read_text().splitlines()
    (tmp_path / "half.csv").write_text("\n".join(lines[:31]) + "\n")
    told = answer("predict", tmp_path / "scaled.star", tmp_path / "half.csv", "--labels", "kind")
    assert told["n_training_rows"] == 30


def test_predict_compares_nothing_unless_asked(files, starshl, answer):
    assert answer("predict", files / "model.safetensors", files / "blobs.npz")["accuracy"] is None
    assert starshl("predict", files / "model.safetensors", files / "blobs.npz").stderr == ""


def test_predict_takes_true_labels_from_a_file(files, blobs, tmp_path, answer):
    np.save(tmp_path / "truth.npy", 2 - blobs[1])
    words = ("predict", files / "model.safetensors", files / "blobs.npy", "--labels", tmp_path / "truth.npy")
    assert answer(*words)["accuracy"] == pytest.approx(1 / 3)


def test_predict_warns_if_no_label_is_a_class_of_the_model(files, tmp_path, starshl):
    np.save(tmp_path / "truth.npy", np.array(["0"] * 60))
    words = ("predict", files / "model.safetensors", files / "blobs.npy", "--labels", tmp_path / "truth.npy")
    assert "a class of the model" in starshl(*words).stderr


def test_labels_that_come_with_the_rows_are_found_by_the_same_rule(files, blobs, tmp_path, starshl, answer):
    X, y = blobs
    lines = [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(X, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,label", *lines]))
    for source, column in {files / "blobs.npz": "y", tmp_path / "t.csv": "label"}.items():
        fitted = starshl("fit", source, "-b", 6, "-o", tmp_path / "m")
        assert f"from 3 features, 60 of 60 rows labeled by {column}" in fitted.stdout.replace(" in X", "")
        assert answer("encode", tmp_path / "m", source, "-o", tmp_path / "c.npz")["n_codes"] == 60
        with np.load(tmp_path / "c.npz") as codes:
            assert codes["y"].tolist() == y.tolist()
        words = ("--no-labels", "--n-codewords", 3, "-b", 6)
        unlabeled = answer("fit", source, *words, "-o", tmp_path / "u")
        assert (unlabeled["n_labeled"], unlabeled["n_features"], unlabeled["labels"]) == (0, 3, None)


def test_columns_to_drop_are_repeated_or_separated_by_commas(files, tmp_path, answer):
    for words in (("--drop", "a,b"), ("--drop", "a", "--drop", "b")):
        result = answer("fit", files / "blobs.csv", "-l", "kind", *words, "-b", 6, "-o", tmp_path / "m")
        assert result["n_features"] == 1


@pytest.mark.parametrize(("method", "words"), [("StarSHL", ("--n-codewords", 3)), ("LSHash", ())])
def test_a_sparse_matrix_is_fitted_and_encoded_like_a_dense_one(method, words, tmp_path, answer):
    X = sparse.random(40, 30, density=0.2, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "t.npz", X)
    answer("fit", tmp_path / "t.npz", "-m", method, *words, "-b", 8, "-o", tmp_path / "m")
    assert answer("encode", tmp_path / "m", tmp_path / "t.npz", "-o", tmp_path / "c.npy")["n_codes"] == 40
    codes = BinaryCodes(np.load(tmp_path / "c.npy"), 8)
    assert np.array_equal(codes.to_signs(), load(tmp_path / "m").transform(X.toarray()))


def test_encode_writes_codes_of_items_by_their_labels_or_from_vectors_alone(files, blobs, tmp_path, answer):
    X, y = blobs
    np.savez(tmp_path / "moved.npz", X=X, y=(y + 1) % 3)
    model, rows = files / "model.safetensors", tmp_path / "moved.npz"
    hasher = load(model)
    for name, words in {"q": (), "d": ("--database",), "u": ("--database", "--no-labels")}.items():
        answer("encode", model, rows, *words, "-o", tmp_path / f"{name}.npy")
    queries, labeled, alone = (BinaryCodes(np.load(tmp_path / f"{name}.npy"), 10) for name in "qdu")
    assert queries == hasher.encode(X)
    assert np.array_equal(labeled.to_signs(), hasher.codewords_[(y + 1) % 3])
    assert alone == hasher.encode_database(X)
    assert alone != labeled


@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_predict_writes_labels_to_a_file(suffix, files, tmp_path, answer):
    path = tmp_path / f"labels{suffix}"
    result = answer("predict", files / "named.safetensors", files / "blobs.csv", "-o", path)
    assert (result["n_rows"], result["output"], "predictions" in result) == (60, str(path), False)
    labels = np.load(path).tolist() if suffix == ".npy" else path.read_text().split()[1:]
    assert labels == ["x"] * 20 + ["y"] * 20 + ["z"] * 20


def test_info_tells_method_parameters_shapes_classes_kernels_format_and_checksum(files, answer, starshl):
    path = files / "named.safetensors"
    result = answer("info", path)
    assert (result["method"], result["n_bits"], result["n_features"], result["n_train"]) == ("StarRidge", 10, 3, 60)
    assert (result["classes"], result["format"], result["params"]["head"]) == (["x", "y", "z"], 1, "posterior")
    assert {kernel["name"] for kernel in result["kernels"]} == {"Gaussian", "Cauchy", "ShiftedCosine"}
    assert result["choice"] == load(path).choice_
    assert {"name": "fitted.codewords_", "shape": [3, 10], "dtype": "int8", "bytes": 30} in result["arrays"]
    assert result["file_bytes"] == path.stat().st_size
    text = starshl("info", path).stdout
    assert result["sha256"] in text
    assert all(word in text for word in ("StarRidge", "x, y, z", "ShiftedCosine", "max_exact_rows"))


def test_info_describes_a_model_whose_kernels_are_functions(blobs, tmp_path, answer):
    X, y = blobs
    StarSHL(6, kernels=[lambda a, b: float(a @ b)], random_state=0).fit(X, y).save(tmp_path / "m")
    assert answer("info", tmp_path / "m")["kernels"][0]["name"] == "a function"


def test_methods_lists_the_catalog(starshl, answer):
    assert [method["name"] for method in answer("methods")] == list(METHODS)
    text = " ".join(starshl("methods").stdout.split())
    for name in METHODS:
        hasher_class = get_class(name)
        facts = hasher_class.facts
        assert f"{name} {facts.labels} {facts.paper} ({facts.year})" in text
        assert f"takes {facts.samples}; costs {facts.cost}" in text
        assert all(f"{variant.name}: " in text for variant in hasher_class.variants)


def test_version_is_that_of_the_package(starshl):
    assert starshl("--version").stdout == f"starshl {package.__version__}\n"


@pytest.mark.parametrize("words", ["", "fit", "encode", "predict", "info", "methods", "demo", "data", "data get"])
def test_help_of_every_command_is_plain_text(words, starshl):
    result = starshl(*words.split(), "--help")
    assert result.exit_code == 0
    assert starshl(*words.split(), "-h").stdout == result.stdout
    assert "Usage:" in result.stdout
    assert result.stdout.isascii()


def test_compress_saves_what_the_library_would_make_of_the_model(files, blobs, tmp_path, answer):
    hasher = load(files / "model.safetensors")
    result = answer("compress", files / "model.safetensors", "--support", 5, "--seed", 2, "-o", tmp_path / "small")
    assert (result["n_support"], result["n_support_before"]) == (5, len(hasher.support_))
    expected = hasher.compress(5, random_state=2)
    np.testing.assert_array_equal(load(tmp_path / "small").transform(blobs[0]), expected.transform(blobs[0]))
