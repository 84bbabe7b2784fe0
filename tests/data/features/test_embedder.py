"""Embedders: raw pictures or texts in, vectors out, and files without code in between."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import Normalizer, StandardScaler

import starshl
from starshl.data.features import Embedder, PictureFeatures, ReadPictures, Scale, Text
from starshl.exceptions import BundleFormatError

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
    assert (loaded.kind, loaded.n_features_out_) == (kind, embedder.n_features_out_)
    assert np.array_equal(loaded.transform(raw), embedder.transform(raw))
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
        Embedder.load(path, steps=[None, StandardScaler().fit(vectors + vectors**2)])
    loaded = Embedder.load(path, steps=embedder.given_steps)
    assert np.array_equal(loaded.transform(TEXTS), embedder.transform(TEXTS))


def test_sparse_vectors_become_dense():
    embedder = Embedder("texts", [Text(3).fit(TEXTS), Normalizer().fit(np.eye(3))])
    assert isinstance(embedder.transform(TEXTS), np.ndarray)


@pytest.mark.parametrize(
    ("kind", "steps", "error", "message"),
    [
        ("sounds", [Text(2).fit(TEXTS)], ValueError, "kind"),
        ("texts", [], ValueError, "one or more fitted transformers"),
        ("texts", [object()], ValueError, "must have transform"),
        ("texts", [Text(2)], NotFittedError, "not fitted yet"),
        ("texts", [Text(2).fit(TEXTS), Scale().fit(np.eye(3))], ValueError, "3 features and gets 2"),
    ],
)
def test_steps_that_do_not_work_together_are_refused(kind, steps, error, message):
    with pytest.raises(error, match=message):
        Embedder(kind, steps)


def test_files_of_other_kinds_are_refused(tmp_path):
    embedder, hasher = tmp_path / "embedder.star", tmp_path / "hasher.star"
    Embedder("texts", [Text(2).fit(TEXTS)]).save(embedder)
    starshl.StarRidge(8, random_state=0).fit(np.eye(6), [0, 1] * 3).save(hasher)
    with pytest.raises(BundleFormatError, match="does not hold an embedder"):
        Embedder.load(hasher)
    with pytest.raises(BundleFormatError, match="an embedder, not a hasher"):
        starshl.load(embedder)
