"""Clusters that a fit without labels has found: pages call them clusters, not labels."""

import re

import numpy as np
import pytest

from starshl import Collection, HybridHasher

from .asking import page


@pytest.fixture
def clustered(running, tmp_path):
    """A service of a collection whose codes hold clusters."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((90, 6)) + 8 * np.eye(3, 6)[np.arange(90) % 3]
    hasher = HybridHasher(6, random_state=0).fit(rows)
    assert hasher.field_holds_ == "clusters"
    with Collection.create(tmp_path / "things", hasher, vectors="float16") as collection:
        collection.add(rows)
    return running(tmp_path / "things")


def words_of(text):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_likely_cluster_of_an_item_is_not_shown_as_a_label(clustered):
    text = page(clustered, "/explore/things?item=0&methods=1").text
    guesses = re.findall(r"<dt>([^<]+)</dt>", text[text.index('class="predictions"') :].split("</dl>")[0])
    assert guesses
    assert all(re.fullmatch(r"cluster \d", guess) for guess in guesses)
    assert "Clusters were found without labels; nobody has named them." in text
    assert "for the cluster," in words_of(text)


def test_codewords_of_clusters_are_called_so(clustered):
    model = page(clustered, "/explore/things/model").text
    assert re.findall(r">(cluster \d)</span>", model)
    assert "one per cluster" in model
