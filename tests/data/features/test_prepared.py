"""PreparedHasher: raw rows in, codes out, everything in one file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import starshl
from starshl import Collection, HybridHasher, StarRidge, StarSHL, make_index
from starshl._common.bundle import read_bundle, write_bundle
from starshl.data.features import Impute, Scale, TableFeatures, Text
from starshl.exceptions import BundleFormatError
from starshl.hashers import PreparedHasher
from starshl.hashers.baselines import LSHash, RandomRotation


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


def saved_and_loaded(hasher, tmp_path, **given):
    hasher.save(tmp_path / "model.star")
    return starshl.load(tmp_path / "model.star", **given)


def test_scaling_matters_and_travels_with_the_model(wine, tmp_path):
    X, X_test, y, y_test = wine
    raw = StarSHL(16, random_state=0).fit(X, y).score(X_test, y_test)
    prepared = PreparedHasher([Scale()], StarSHL(16, random_state=0)).fit(X, y)
    loaded = saved_and_loaded(prepared, tmp_path)
    assert loaded.score(X_test, y_test) == prepared.score(X_test, y_test)
    assert loaded.score(X_test, y_test) > raw + 0.1


def test_codes_are_those_of_a_pipeline(wine):
    X, X_test, y, _ = wine
    pipeline = make_pipeline(StandardScaler(), StarSHL(8, random_state=0)).fit(X, y)
    prepared = PreparedHasher([Scale()], StarSHL(8, random_state=0)).fit(X, y)
    assert np.array_equal(prepared.transform(X_test), pipeline.transform(X_test))
    assert np.array_equal(prepared.predict(X_test), pipeline.predict(X_test))
    assert np.array_equal(prepared.decision_function(X_test), pipeline.decision_function(X_test))
    assert prepared.n_bits_ == prepared.n_bits == 8
    assert prepared.classes_.tolist() == [0, 1, 2]
    assert prepared.n_features_in_ == 13


def test_loaded_model_gives_the_same_codes(wine, tmp_path):
    X, X_test, y, _ = wine
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    prepared = PreparedHasher([Impute(), Scale()], StarSHL(8, random_state=0)).fit(X, y)
    loaded = saved_and_loaded(prepared, tmp_path)
    assert np.array_equal(loaded.decision_function(X), prepared.decision_function(X))
    assert np.array_equal(loaded.encode(X_test).packed, prepared.encode(X_test).packed)
    assert repr(loaded) == repr(prepared)
    loaded.save(tmp_path / "again.star")
    assert (tmp_path / "again.star").read_bytes() == (tmp_path / "model.star").read_bytes()
    assert np.array_equal(clone(loaded).fit(X, y).transform(X), prepared.transform(X))


def test_table_with_text_becomes_codes(tmp_path):
    table = pd.DataFrame(
        {
            "price": [1000.0, None, 2.0, 3.0] * 8,
            "color": ["red", "blue", None, "brown"] * 8,
            "note": ["a fast car", "an old car", "fresh bread", "old bread"] * 8,
        }
    )
    y = np.array(["car", "car", "bread", "bread"] * 8)
    prepared = PreparedHasher([TableFeatures(text="note")], StarSHL(4, random_state=0)).fit(table, y)
    loaded = saved_and_loaded(prepared, tmp_path)
    assert loaded.predict(table[["note", "price", "color"]]).tolist() == y.tolist()
    assert loaded.feature_names_in_.tolist() == ["price", "color", "note"]


def test_list_of_texts_becomes_codes(tmp_path):
    texts = ["a fast car", "an old car", "fresh bread", "old bread"] * 5
    prepared = PreparedHasher([Text(3)], StarSHL(4, random_state=0)).fit(texts, [0, 0, 1, 1] * 5)
    assert saved_and_loaded(prepared, tmp_path).predict(["bread", "car"]).tolist() == [1, 0]


def test_hasher_that_does_not_predict_has_no_predict(wine):
    X, _, _, _ = wine
    prepared = PreparedHasher([Scale()], LSHash(8, random_state=0)).fit(X)
    assert not hasattr(prepared, "predict")
    assert not hasattr(prepared, "classes_")
    assert hasattr(PreparedHasher([Scale()], StarSHL(8)), "predict")


def test_items_are_encoded_as_the_hasher_inside_does(wine, tmp_path):
    X, _, _, _ = wine
    inner = RandomRotation(8, random_state=0)
    prepared = PreparedHasher([Scale()], inner).fit(X)
    alone = clone(inner).fit(Scale().fit_transform(X))
    rows = prepared.prepare(X)
    assert np.array_equal(prepared.encode_database(X).packed, alone.encode_database(rows).packed)
    assert np.array_equal(prepared.encode(X).packed, alone.encode(rows).packed)


@pytest.fixture(scope="module")
def prepared_ridge(wine):
    """Scaled wine with a third of the labels hidden, and what StarRidge makes of the scaled rows itself."""
    X, _, y, _ = wine
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    inner = StarRidge(8, random_state=0)
    prepared = PreparedHasher([Scale()], inner).fit(X, y)
    return prepared, clone(inner).fit(Scale().fit_transform(X), y), y


def test_probabilities_and_what_the_fit_kept_are_those_of_the_hasher_inside(prepared_ridge, wine):
    prepared, alone, _ = prepared_ridge
    X_test = wine[1]
    assert np.array_equal(prepared.predict_proba(X_test), alone.predict_proba(prepared.prepare(X_test)))
    assert prepared.choice_ == alone.choice_
    assert prepared.training_codes_ == alone.training_codes_
    assert np.array_equal(prepared.transduction_, alone.transduction_)


def test_codes_of_the_training_rows_are_of_the_space_of_the_queries(wine):
    X, X_test, y, _ = wine
    prepared = PreparedHasher([Scale()], HybridHasher(8, random_state=0)).fit(X, y)
    index = make_index(prepared.training_codes_, hasher=prepared)
    assert index.search(prepared.encode_queries(X_test), k=1).ids.shape == (len(X_test), 1)


def test_score_without_labels_is_that_of_the_hasher_inside(prepared_ridge, wine):
    prepared, alone, _ = prepared_ridge
    assert prepared.score(wine[1]) == alone.score(prepared.prepare(wine[1]))


def test_items_of_prepared_rows_are_coded_by_their_labels(prepared_ridge, wine):
    prepared, alone, _ = prepared_ridge
    X, _, y, _ = wine
    assert np.array_equal(prepared.encode_database(X, y).to_signs(), alone.codewords_[y])
    assert prepared.encode_database(X) == alone.encode_database(prepared.prepare(X))


def test_another_length_keeps_the_preparation(prepared_ridge, wine, tmp_path):
    prepared, alone, _ = prepared_ridge
    X_test = wine[1]
    longer = prepared.with_bits(16)
    assert (longer.n_bits, longer.n_bits_, prepared.n_bits_) == (16, 16, 8)
    assert longer.encode(X_test) == alone.with_bits(16).encode(prepared.prepare(X_test))
    loaded = saved_and_loaded(longer, tmp_path)
    assert loaded.encode(X_test) == longer.encode(X_test)


def test_compressed_hasher_keeps_the_preparation(prepared_ridge, wine, tmp_path):
    prepared, alone, _ = prepared_ridge
    X, X_test, _, _ = wine
    small = prepared.compress(10, X_test, random_state=3)
    expected = alone.compress(10, prepared.prepare(X_test), random_state=3)
    assert len(small.hasher_.support_) == 10 < len(prepared.hasher_.support_)
    assert small.encode(X) == expected.encode(prepared.prepare(X))
    assert saved_and_loaded(small, tmp_path).encode(X) == small.encode(X)


def test_what_the_hasher_inside_lacks_is_lacking_outside(wine):
    prepared = PreparedHasher([Scale()], LSHash(8, random_state=0)).fit(wine[0])
    for name in ("with_bits", "compress", "predict_proba", "choice_", "transduction_"):
        assert not hasattr(prepared, name)
    assert prepared.training_codes_ is None


def test_facts_and_settings_are_those_of_the_hasher_inside():
    prepared = PreparedHasher([Scale()], StarSHL(8, n_jobs=2))
    assert prepared.facts is StarSHL.facts
    assert prepared.current_facts.labels == "optional"
    assert prepared.n_jobs == 2
    assert prepared.set_params(hasher__n_bits=4).n_bits == 4


def test_prepared_hasher_can_back_a_collection(wine, tmp_path):
    X, X_test, y, _ = wine
    prepared = PreparedHasher([Scale()], StarSHL(8, random_state=0)).fit(X, y)
    with Collection.create(tmp_path / "items", prepared) as items:
        items.add(X)
    with Collection(tmp_path / "items") as items:
        assert len(items) == len(X)
        assert np.array_equal(items.hasher.encode(X_test).packed, prepared.encode(X_test).packed)


def test_other_transformer_is_passed_again_at_load(wine, tmp_path):
    X, X_test, y, _ = wine
    prepared = PreparedHasher([Impute(), MinMaxScaler(), PCA(5)], StarSHL(8, random_state=0)).fit(X, y)
    given = [None, *prepared.steps_[1:]]
    loaded = saved_and_loaded(prepared, tmp_path, steps=given)
    assert np.array_equal(loaded.transform(X_test), prepared.transform(X_test))
    again = saved_and_loaded(loaded, tmp_path, steps=given)
    assert np.array_equal(again.transform(X_test), prepared.transform(X_test))


def test_other_transformer_on_a_data_frame_is_recognized(wine, tmp_path):
    X, X_test, y, _ = wine
    names = [f"column {j}" for j in range(13)]
    X, X_test = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    step = ColumnTransformer([("scale", StandardScaler(), names[:6])])
    prepared = PreparedHasher([step], StarSHL(8, random_state=0)).fit(X, y)
    loaded = saved_and_loaded(prepared, tmp_path, steps=prepared.steps_)
    assert np.array_equal(loaded.transform(X_test), prepared.transform(X_test))
    with pytest.raises(ValueError, match="another one"):
        starshl.load(tmp_path / "model.star", steps=[clone(step).fit(X_test)])


def test_wrong_transformers_are_refused_at_load(wine, tmp_path):
    X, X_test, y, _ = wine
    prepared = PreparedHasher([Scale(), PCA(5)], StarSHL(8, random_state=0)).fit(X, y)
    path = tmp_path / "model.star"
    prepared.save(path)
    other = PCA(5).fit(X_test)
    for steps, message in [
        (None, r"PCA at position 1.*load\(path, steps"),
        ([prepared.steps_[1]], "has 1 entries; this model has 2 steps"),
        ([None, None], "pass the fitted PCA"),
        ([Scale(), prepared.steps_[1]], "is in the file already"),
        ([None, other], "another one"),
        ([None, PCA(5)], "fails on rows of the fit"),
        ([None, PCA(4).fit(prepared.steps_[0].transform(X))], "another one"),
    ]:
        with pytest.raises(ValueError, match=message):
            starshl.load(path, steps=steps)


@pytest.mark.parametrize("hasher", [LSHash(8), StarSHL(8, random_state=0)], ids=lambda hasher: type(hasher).__name__)
def test_steps_are_refused_by_files_of_other_hashers(hasher, wine, tmp_path):
    X, _, y, _ = wine
    path = tmp_path / "model.star"
    hasher.fit(X, y).save(path)
    with pytest.raises(ValueError, match="takes no steps"):
        starshl.load(path, steps=[])


def test_fitted_pipeline_becomes_a_prepared_hasher(wine, tmp_path):
    X, X_test, y, _ = wine
    pipeline = make_pipeline(Scale(), "passthrough", PCA(6), StarSHL(8, random_state=0)).fit(X, y)
    prepared = PreparedHasher.from_pipeline(pipeline, X)
    assert np.array_equal(prepared.predict(X_test), pipeline.predict(X_test))
    loaded = saved_and_loaded(prepared, tmp_path, steps=[None, pipeline[2]])
    assert np.array_equal(loaded.predict(X_test), pipeline.predict(X_test))
    with pytest.raises(ValueError, match="another one"):
        starshl.load(tmp_path / "model.star", steps=[None, PCA(6).fit(X_test)])
    unfitted = PreparedHasher.from_pipeline(clone(pipeline))
    assert not hasattr(unfitted, "n_bits_")
    assert np.array_equal(unfitted.fit(X, y).predict(X_test), pipeline.predict(X_test))
    with pytest.raises(ValueError, match="last step"):
        PreparedHasher.from_pipeline(make_pipeline(Scale(), PCA()))


def test_failed_refit_changes_nothing(wine):
    X, X_test, y, _ = wine
    prepared = PreparedHasher([Scale()], StarSHL(8, random_state=0)).fit(X, y)
    before = prepared.decision_function(X_test)
    with pytest.raises(ValueError, match="NaN"):
        prepared.fit(np.full_like(X, np.nan), y)
    assert np.array_equal(prepared.decision_function(X_test), before)


@pytest.mark.parametrize(
    ("steps", "hasher", "message"),
    [
        ([Scale()], PCA(), "must be a hasher"),
        (Scale(), StarSHL(8), "give a list of transformers"),
        ([3], StarSHL(8), "must have fit and transform"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(steps, hasher, message, wine):
    with pytest.raises(ValueError, match=message):
        PreparedHasher(steps, hasher).fit(wine[0], wine[2])


def test_edited_files_are_refused(wine, tmp_path):
    X, _, y, _ = wine
    PreparedHasher([Impute(), Scale()], StarSHL(8, random_state=0)).fit(X, y).save(tmp_path / "model.star")
    header, arrays = read_bundle(tmp_path / "model.star")
    edits = [
        {"steps": []},
        {"steps": header["steps"][::-1]},
        {"steps": [header["steps"][0] | {"name": "os.system"}, header["steps"][1]]},
        {"steps": 3},
        {"hasher": header["hasher"] | {"method": "os:system"}},
        {"hasher": {}},
        {"fitted": {}},
        {"fitted": header["fitted"] | {"n_bits_": {"kind": "value", "value": 9}}},
        {"fitted": header["fitted"] | {"n_features_in_": {"kind": "value", "value": 2}}},
        {"fitted": header["fitted"] | {"predict": {"kind": "value", "value": 2}}},
    ]
    for edit in edits:
        if edit == {"steps": []}:
            continue  # a hasher without steps is a model too: that of the inner rows
        write_bundle(tmp_path / "edited.star", header | edit, arrays)
        with pytest.raises((BundleFormatError, ValueError)):
            starshl.load(tmp_path / "edited.star")


def test_a_file_whose_steps_were_taken_out_is_refused(wine, tmp_path):
    X, _, y, _ = wine
    path = tmp_path / "model.star"
    PreparedHasher([Impute(), Scale()], StarSHL(8, random_state=0)).fit(X, y).save(path)
    header, arrays = read_bundle(path)
    del header["format"]
    for steps in ([], header["steps"][:1], {}, None):
        write_bundle(path, header | {"steps": steps}, arrays)
        with pytest.raises(BundleFormatError, match="no step for its array"):
            starshl.load(path)


def test_the_hasher_inside_is_found_through_every_layer_of_preprocessing(wine):
    innermost = LSHash(8, random_state=0)
    outer = PreparedHasher([Scale()], PreparedHasher([Scale()], innermost)).fit(wine[0])
    assert outer.inner is outer.hasher_.hasher_
    assert outer.inner.inner is outer.inner
