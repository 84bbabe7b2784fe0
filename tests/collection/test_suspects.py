"""Wrong labels are found by what all other items say, and the hasher can follow labels that changed."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from starshl import Collection, StarRidge
from starshl.hashers.baselines import LSHash


def flipped(labels, seed):
    """Return class numbers of which a tenth is wrong, and which ones are."""
    rng = np.random.default_rng(seed)
    numbers = np.unique(labels, return_inverse=True)[1]
    wrong = np.zeros(len(numbers), bool)
    wrong[rng.choice(len(numbers), len(numbers) // 10, replace=False)] = True
    shifts = rng.integers(1, numbers.max() + 1, len(numbers))
    return np.where(wrong, (numbers + shifts) % (numbers.max() + 1), numbers), wrong


def precision_of_ranking(folder, rows, labels, wrong):
    with Collection.create(folder, LSHash(16, random_state=0).fit(rows), vectors="float16") as collection:
        collection.add(rows, labels=labels)
        ranking = collection.suspects(None, probability=0.0)
    assert len(ranking) == len(rows)
    assert all(each.label == labels[each.id] != each.likely for each in ranking)
    return average_precision_score([wrong[each.id] for each in ranking], -np.arange(len(ranking)))


def test_flipped_labels_of_a_fully_labeled_collection_come_first(tmp_path):
    rows, digits = load_digits(return_X_y=True)
    labels, wrong = flipped(digits, 0)
    assert precision_of_ranking(tmp_path / "items", rows / 16, labels, wrong) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_flipped_labels_of_banking77_come_first(tmp_path, seed):
    path = Path(os.environ.get("STARSHL_DATA", "")) / "banking77_minilm384.npz"
    if not path.is_file():
        pytest.skip("STARSHL_DATA names no folder with BANKING77")
    data = np.load(path)
    training = data["split"] == data["split"][0]
    labels, wrong = flipped(data["y"][training], seed)
    rows = data["X"][training].astype(np.float64)
    assert precision_of_ranking(tmp_path / "items", rows, labels, wrong) >= 0.97


@pytest.fixture
def clusters():
    names = np.array(["ant", "bee", "cow"])[np.arange(90) % 3]
    return np.random.default_rng(0).standard_normal((90, 4)) + 6.0 * np.eye(4)[np.arange(90) % 3], names


@pytest.fixture
def collection(tmp_path, clusters):
    rows, names = clusters
    known = StarRidge(16, random_state=3).fit(rows[names != "cow"], names[names != "cow"])
    with Collection.create(tmp_path / "items", known, vectors="float16") as opened:
        opened.add(rows, labels=np.where(names == "cow", None, names))
        yield opened


def test_only_labels_that_are_probably_wrong_are_listed_and_items_without_a_label_never(collection):
    assert collection.suspects() == []
    collection.set_labels([0], ["bee"])
    (found,) = collection.suspects()
    assert (found.id, found.label, found.likely) == (0, "bee", "ant")
    assert 0.5 < found.probability <= 1


def test_the_only_item_of_a_class_is_not_suspected(collection):
    collection.set_labels([2], ["cow"], warn_unknown=False)
    assert 2 not in [each.id for each in collection.suspects(None, probability=0.0)]


def test_one_class_alone_has_no_suspects(collection, clusters):
    collection.set_labels(np.flatnonzero(clusters[1] == "bee"), None)
    assert collection.suspects() == []


@pytest.mark.parametrize("wrong", [{"n": 0}, {"probability": 2}])
def test_impossible_limits_are_refused(collection, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        collection.suspects(**wrong)


def test_a_refit_teaches_the_hasher_new_classes_with_the_settings_that_it_had(collection, clusters):
    cows = np.flatnonzero(clusters[1] == "cow")
    with pytest.warns(UserWarning, match=r"collection\.refit\(\).*index refit"):
        items = collection.set_labels(cows, ["cow"] * len(cows))
    assert {item.code_from for item in items} == {"vector"}
    hasher = collection.refit()
    assert hasher.class_labels == ["ant", "bee", "cow"]
    assert (hasher.n_bits, hasher.random_state) == (16, 3)
    assert {item.code_from for item in collection.get(cows)} == {"label"}


def test_a_collection_without_vectors_says_what_is_missing(tmp_path, clusters):
    rows, names = clusters
    with Collection.create(tmp_path / "bare", StarRidge(8, random_state=0).fit(rows, names)) as bare:
        bare.add(rows, labels=names)
        for action in (bare.suspects, bare.refit):
            with pytest.raises(ValueError, match=r"keeps no vectors.*vectors='float16'"):
                action()
