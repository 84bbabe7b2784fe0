"""Extractors: raw pictures or texts in, vectors out, and files without code in between."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import Normalizer, StandardScaler

import starshl
from starshl.exceptions import BundleFormatError
from starshl.data.features.extractor import Extractor
from starshl.data.features.pictures import PictureFeatures
from starshl.data.features.picture_files import ReadPictures
from starshl.data.features.numeric import Scale
from starshl.data.features.text import Text

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
def test_a_saved_extractor_makes_the_same_vectors(tmp_path, kind, steps, raw):
    extractor = Extractor(kind, steps)
    extractor.save(tmp_path / "extractor.star")
    loaded = Extractor.load(tmp_path / "extractor.star")
    assert (loaded.kind, loaded.n_features_out_) == (kind, extractor.n_features_out_)
    assert np.array_equal(loaded.transform(raw), extractor.transform(raw))
    loaded.save(tmp_path / "again.star")
    assert (tmp_path / "again.star").read_bytes() == (tmp_path / "extractor.star").read_bytes()


def test_a_transformer_of_another_package_is_passed_again(tmp_path):
    vectors = Text(3).fit(TEXTS).transform(TEXTS)
    scaler = StandardScaler().fit(vectors)
    extractor = Extractor("texts", [Text(3).fit(TEXTS), scaler], examples=TEXTS)
    path = tmp_path / "extractor.star"
    extractor.save(path)
    with pytest.raises(ValueError, match=r"StandardScaler at position 1. Reopen it with steps=\[...\]: 2 entries"):
        Extractor.load(path)
    with pytest.raises(ValueError, match="it is another one, or fitted on other rows"):
        Extractor.load(path, steps=[None, StandardScaler().fit(vectors + vectors**2)])
    loaded = Extractor.load(path, steps=extractor.given_steps)
    assert np.array_equal(loaded.transform(TEXTS), extractor.transform(TEXTS))


def test_sparse_vectors_become_dense():
    extractor = Extractor("texts", [Text(3).fit(TEXTS), Normalizer().fit(np.eye(3))])
    assert isinstance(extractor.transform(TEXTS), np.ndarray)


@pytest.mark.parametrize(
    ("kind", "steps", "error", "message"),
    [
        ("sounds", [Text(2).fit(TEXTS)], ValueError, "kind"),
        ("texts", [], ValueError, "one or more fitted transformers"),
        ("texts", [object()], ValueError, "must have transform"),
        ("texts", [Text(2)], NotFittedError, "not fitted yet. Call fit first"),
        ("texts", [Text(2).fit(TEXTS), Scale().fit(np.eye(3))], ValueError, "takes 3 features and gets 2"),
    ],
)
def test_steps_that_do_not_work_together_are_refused(kind, steps, error, message):
    with pytest.raises(error, match=message):
        Extractor(kind, steps)


def test_files_of_other_kinds_are_refused(tmp_path):
    extractor, hasher = tmp_path / "extractor.star", tmp_path / "hasher.star"
    Extractor("texts", [Text(2).fit(TEXTS)]).save(extractor)
    starshl.StarRidge(8, random_state=0).fit(np.eye(6), [0, 1] * 3).save(hasher)
    with pytest.raises(BundleFormatError, match="does not hold an extractor"):
        Extractor.load(hasher)
    with pytest.raises(BundleFormatError, match="holds an extractor, not a hasher"):
        starshl.load(extractor)
