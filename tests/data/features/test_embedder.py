"""Embedders: raw pictures or texts in, vectors out, and files without code in between."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import Normalizer, StandardScaler

import starshl
from starshl.data.features import Embedder, PictureFeatures, ReadPictures, Scale, Text, UnitLength, make_embedder
from starshl.exceptions import BundleFormatError, MissingFunctionError

TEXTS = ["a red car", "a blue car", "fresh bread", "old bread and butter", "a car with bread in it"]
PICTURES = list(np.random.default_rng(0).integers(0, 256, (5, 20, 24, 3), dtype=np.uint8))


def _picture_steps():
    read = ReadPictures(side=16).fit()
    features = PictureFeatures((16, 16, 3)).fit(np.full((1, 16, 16, 3), 255, np.uint8))
    return [read, features]


@pytest.mark.parametrize(
    ("kind", "steps", "raw"),
    [("pictures", _picture_steps(), PICTURES), ("texts", [Text(3).fit(TEXTS)], TEXTS)],
    ids=["pictures", "texts"],
)
def test_a_saved_embedder_makes_the_same_vectors(tmp_path, kind, steps, raw):
    embedder = Embedder(kind, steps)
    embedder.save(tmp_path / "embedder.star")
    loaded = Embedder.load(tmp_path / "embedder.star")
    assert (loaded.takes, loaded.dimension) == ((kind,), embedder.dimension)
    assert np.array_equal(loaded.embed(raw), embedder.embed(raw))
    loaded.save(tmp_path / "again.star")
    assert (tmp_path / "again.star").read_bytes() == (tmp_path / "embedder.star").read_bytes()


def test_a_transformer_of_another_package_is_passed_again(tmp_path):
    vectors = Text(3).fit(TEXTS).transform(TEXTS)
    scaler = StandardScaler().fit(vectors)
    embedder = Embedder("texts", [Text(3).fit(TEXTS), scaler], examples=TEXTS)
    path = tmp_path / "embedder.star"
    embedder.save(path)
    with pytest.raises(ValueError, match=r"at position 1.*2 entries"):
        Embedder.load(path)
    with pytest.raises(ValueError, match="fitted on other rows"):
        Embedder.load(path, [None, StandardScaler().fit(vectors + vectors**2)])
    for given in (embedder.given_steps, embedder, scaler):
        loaded = Embedder.load(path, given)
        assert np.array_equal(loaded.embed(TEXTS), embedder.embed(TEXTS))


def test_sparse_vectors_become_dense():
    embedder = Embedder("texts", [Text(3).fit(TEXTS), Normalizer().fit(np.eye(3))])
    assert isinstance(embedder.embed(TEXTS), np.ndarray)


@pytest.mark.parametrize(
    ("kind", "steps", "error", "message"),
    [
        ("sounds", [Text(2).fit(TEXTS)], ValueError, "takes"),
        ((), [Text(2).fit(TEXTS)], ValueError, "takes is empty"),
        ("texts", [], ValueError, "one or more transformers"),
        ("texts", [Text(2).fit(TEXTS), len], ValueError, "must be the first step"),
        ("texts", [object()], ValueError, "must have transform"),
        ("texts", [Text(2).fit(TEXTS), Scale().fit(np.eye(3))], ValueError, "3 features and gets 2"),
    ],
)
def test_steps_that_do_not_work_together_are_refused(kind, steps, error, message):
    with pytest.raises(error, match=message):
        Embedder(kind, steps)


def test_an_embedder_that_learns_learns_once(tmp_path):
    embedder = Embedder("texts", [Text(3), UnitLength()], name="words")
    assert not embedder.is_fitted
    for use in (lambda: embedder.embed(TEXTS), lambda: embedder.save(tmp_path / "embedder.star")):
        with pytest.raises(NotFittedError, match="'words' learns from items"):
            use()
    vectors = embedder.fit_embed(TEXTS)
    assert (embedder.is_fitted, embedder.dimension, vectors.shape) == (True, 3, (5, 3))
    assert np.array_equal(embedder.embed(TEXTS), vectors)
    assert np.array_equal(embedder.fit(["something else"] * 3).embed(TEXTS), vectors)
    assert embedder.settings["Text"]["n_components"] == 3


def test_the_digest_is_that_of_what_was_learned():
    same, other = make_embedder("tfidf").fit(TEXTS), make_embedder("tfidf").fit(TEXTS[::-1])
    assert make_embedder("tfidf").digest is None
    assert same.digest == make_embedder("tfidf").fit(TEXTS).digest
    assert same.digest != make_embedder("tfidf").fit([*TEXTS, "rain"]).digest
    assert len(other.digest) == 64


def _lengths(texts):
    return [[len(text), text.count("a"), 1.0] for text in texts]


def test_a_function_is_an_embedder_that_is_passed_again(tmp_path):
    embedder = Embedder("texts", [_lengths])
    assert (embedder.name, embedder.dimension, embedder.digest) == ("_lengths", 3, None)
    assert embedder.embed(["a cat"]).tolist() == [[5, 2, 1]]
    embedder.save(tmp_path / "embedder.star")
    with pytest.raises(MissingFunctionError, match="_lengths at position 0"):
        Embedder.load(tmp_path / "embedder.star")
    with pytest.raises(ValueError, match="it is another one"):
        Embedder.load(tmp_path / "embedder.star", lambda texts: np.ones((len(texts), 3)))
    assert Embedder.load(tmp_path / "embedder.star", _lengths).embed(["a cat"]).tolist() == [[5, 2, 1]]


def test_a_function_of_pictures_and_texts_gets_pillow_pictures_and_strings():
    def describe(items):
        return [[0.0, len(item)] if isinstance(item, str) else [item.width, item.height] for item in items]

    both = Embedder(("pictures", "texts"), [describe])
    assert both.embed([PICTURES[0], "a cat"]).tolist() == [[24, 20], [0, 5]]


@pytest.mark.parametrize(
    "function",
    [lambda texts: np.ones(len(texts)), lambda texts: np.ones((2, 2)), lambda texts: np.full((len(texts), 2), np.nan)],
    ids=["numbers", "rows missing", "NaN"],
)
def test_a_function_that_gives_no_vectors_is_refused(function):
    with pytest.raises(ValueError, match="one row per item"):
        Embedder("texts", [function])


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        (["a car", " "], ValueError, "1 text of 2 .rows 1, counted from 0. is empty"),
        ([""], ValueError, "The text is empty"),
        (["a car", None], ValueError, "takes texts, which are strings"),
        (PICTURES, ValueError, "takes texts"),
        ("a car", TypeError, "a list of them"),
    ],
)
def test_what_is_no_text_is_refused(items, error, message):
    with pytest.raises(error, match=message):
        make_embedder("tfidf").fit(TEXTS).embed(items)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bert", "known are tfidf, minilm"),
        ("onnx", "onnx:FOLDER"),
        ("tfidf:words", "takes none"),
        ("sentence-transformers", "NAME_OR_FOLDER"),
    ],
)
def test_unknown_names_are_told_the_known_ones(name, error):
    with pytest.raises(ValueError, match=error):
        make_embedder(name)


def test_files_of_other_kinds_are_refused(tmp_path):
    embedder, hasher = tmp_path / "embedder.star", tmp_path / "hasher.star"
    Embedder("texts", [Text(2).fit(TEXTS)]).save(embedder)
    starshl.StarRidge(8, random_state=0).fit(np.eye(6), [0, 1] * 3).save(hasher)
    with pytest.raises(BundleFormatError, match="does not hold an embedder"):
        Embedder.load(hasher)
    with pytest.raises(BundleFormatError, match="an embedder, not a hasher"):
        starshl.load(embedder)
