"""A model card says what a fit was given, what was measured, and travels with the model file."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from starshl import HybridHasher, StarRidge, StarSHL, load, model_card
from starshl._common.bundle import read_bundle, write_bundle
from starshl._common.files import array_digest
from starshl.data.features import Scale, Text
from starshl.hashers import PreparedHasher, card_markdown, measure
from starshl.hashers.baselines import ITQ, LSHash
from starshl.hashers.fit_record import data_digest
from starshl.learning.kernels import SpectrumKernel


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def ridge(digits):
    X, y = digits
    return StarRidge(16, random_state=0).fit(X[:300], np.where(np.arange(300) % 3, y[:300], -1))


def test_a_card_names_the_data_by_its_hashes_and_counts_its_labels(ridge, digits):
    X, y = digits
    data = model_card(ridge)["data"]
    assert (data["rows"], data["columns"], data["type"], data["labeled"], data["classes"]) == (
        300,
        64,
        "float64",
        200,
        10,
    )
    assert data["rows_sha256"] == array_digest({"": X[:300]})
    assert data["label_counts"]["4"] == int(np.sum((y[:300] == 4) & (np.arange(300) % 3 > 0)))


def test_a_card_is_plain_json_and_a_page_of_markdown(ridge):
    card = model_card(ridge)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    page = card_markdown(card)
    for heading in ("# Model card: StarRidge, 16 bits", "## Data", "## Measured", "## Limits", "## Versions"):
        assert f"{heading}\n" in page
    assert card["data"]["rows_sha256"] in page
    assert "| n_bits | 16 |" in page


def test_leave_one_out_figures_come_near_to_those_of_unseen_rows(digits):
    X, y = digits
    order = np.random.default_rng(0).permutation(len(X))  # neighboring rows come from the same writers
    fitted, unseen = order[:400], order[400:1400]
    hasher = StarRidge(16, random_state=0).fit(X[fitted], y[fitted])
    measured = measure(hasher, X[unseen], y[unseen])
    left_out = model_card(hasher)["measured"][0]
    assert left_out["how"].startswith("leave-one-out: 400 labeled training rows")
    for name in ("accuracy", "precision_at_10"):
        assert abs(left_out[name] - measured[name]) < 0.03


def test_a_card_travels_with_the_file_and_through_other_lengths(ridge, tmp_path):
    ridge.save(tmp_path / "model.star")
    loaded = load(tmp_path / "model.star")
    assert model_card(loaded) == model_card(ridge)
    loaded.save(tmp_path / "again.star")
    assert (tmp_path / "again.star").read_bytes() == (tmp_path / "model.star").read_bytes()
    assert model_card(ridge.with_bits(8))["data"] == model_card(ridge)["data"]
    assert model_card(ridge.compress(30))["data"] == model_card(ridge)["data"]
    assert "Compressed" in model_card(ridge.compress(30))["limits"][1]


def test_the_record_of_a_fit_changes_neither_space_nor_codes(ridge, digits):
    space, codes = ridge.space_id_, ridge.encode(digits[0][:50])
    hasher = LSHash(8, random_state=0).fit(digits[0])
    of_planes = hasher.space_id_
    hasher.fit_record_ = {"versions": {}}
    assert hasher.space_id_ == of_planes
    assert (ridge.space_id_, ridge.encode(digits[0][:50])) == (space, codes)


def test_a_file_without_a_record_still_loads_and_says_so(ridge, tmp_path):
    ridge.save(tmp_path / "model.star")
    header, arrays = read_bundle(tmp_path / "model.star")
    del header["fit_record"], header["format"]
    write_bundle(tmp_path / "old.star", header, arrays)
    card = model_card(load(tmp_path / "old.star"))
    assert card["data"] == {}
    assert "Not recorded" in card_markdown(card)
    header["fit_record"] = ["not", "a record"]
    write_bundle(tmp_path / "odd.star", header, arrays)
    assert model_card(load(tmp_path / "odd.star"))["data"] == {}


def test_rows_are_counted_without_labels_whatever_holds_them(digits):
    X = digits[0][:60]
    kernels = np.stack([X @ X.T, (X @ X.T) ** 2]) / 1e6
    of_kernels = StarRidge(4, kernels="precomputed", n_codewords=3, random_state=0).fit(kernels)
    of_any_labels = LSHash(4, random_state=0).fit(X, ["one label, which nobody reads"])
    assert [hasher.fit_record_["rows"] for hasher in (of_kernels, of_any_labels)] == [60, 60]


def test_measurements_take_tables_and_lists(digits):
    X, y = digits
    hasher = StarRidge(8, random_state=0).fit(X[:200], y[:200])
    as_array = measure(hasher, X[200:400], y[200:400])
    as_list = measure(hasher, X[200:400].tolist(), y[200:400])
    as_table = measure(hasher, pd.DataFrame(X[200:400]), y[200:400])
    assert as_array == as_list == as_table


def test_measurements_take_texts():
    texts, y = ["red car", "blue car", "fresh bread", "old bread"] * 6, ["car", "car", "bread", "bread"] * 6
    hasher = PreparedHasher([Text(2)], StarRidge(4, random_state=0)).fit(texts, y)
    assert measure(hasher, texts, y)["accuracy"] == 1.0


def test_measurements_on_held_out_rows_are_kept_and_replaced_not_repeated(digits, tmp_path):
    X, y = digits
    hasher = ITQ(16, random_state=0).fit(X[:300])
    assert model_card(hasher)["measured"] == []
    first = measure(hasher, X[300:500], y[300:500])
    measure(hasher, X[300:500], y[300:500])
    hasher.save(tmp_path / "model.star")
    assert model_card(load(tmp_path / "model.star"))["measured"] == [first]
    assert "accuracy" not in first
    codes = hasher.encode(X[300:500])
    order = np.argsort(codes[np.arange(1, 200, 2)].distances(codes[np.arange(0, 200, 2)]), axis=1, kind="stable")[
        :, :10
    ]
    hits = y[300:500][::2][order] == y[300:500][1::2, None]
    assert first["precision_at_10"] == pytest.approx(hits.mean(), abs=1e-4)
    with pytest.raises(ValueError, match="20 rows or more"):
        measure(hasher, X[:200], None)


def test_hybrid_and_prepared_models_have_cards_of_what_is_inside(digits):
    X, y = (array[np.random.default_rng(0).permutation(len(array))] for array in digits)
    hybrid = HybridHasher(20, random_state=0).fit(X[:200], y[:200])
    assert model_card(hybrid)["measured"][0]["accuracy"] > 0.9
    assert measure(hybrid, X[400:800], y[400:800])["precision_at_10"] > 0.85
    prepared = PreparedHasher([Scale()], StarSHL(8, random_state=0)).fit(X[:200], y[:200])
    card = model_card(prepared)
    assert (card["model"]["method"], card["model"]["steps"], card["data"]["rows"]) == ("StarSHL", ["Scale"], 200)
    assert not hasattr(prepared.hasher_, "fit_record_")


def test_samples_of_every_kind_are_described(digits):
    X, y = digits
    assert model_card(StarRidge(4, random_state=0).fit(csr_array(X[:60]), y[:60]))["data"]["type"] == "sparse float64"
    words = [f"{'ab' if label % 2 else 'xy'}{row}" for row, label in enumerate(y[:60])]
    texts = StarRidge(4, kernels=[SpectrumKernel()], random_state=0).fit(words, y[:60] % 2)
    assert model_card(texts)["data"]["rows_sha256"] == data_digest(words)
    grams = np.stack([X[:60] @ X[:60].T] * 2)
    assert model_card(StarRidge(4, kernels="precomputed", random_state=0).fit(grams, y[:60]))["data"]["rows"] == 60
    prepared = PreparedHasher([Text(2)], LSHash(2, random_state=0)).fit(["a red car", "blue cars", "fresh bread"])
    assert model_card(prepared)["data"]["columns"] is None


def test_objects_that_print_differently_in_every_process_are_not_hashed():
    assert data_digest([object(), object()]) is None
    assert data_digest(["a", None, 1.5]) == data_digest(np.array(["a", None, 1.5], dtype=object))
