"""Over HTTP and on its pages, a service says how likely hits are, and leaves out what is not likely enough."""

import re

import numpy as np
import pytest

from starshl import Collection, HybridHasher, StarRidge

from .asking import page


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    return rng.normal(size=(3, 6))[y] * 1.2 + rng.normal(size=(120, 6)), np.array(["ant", "bee", "cow"])[y]


@pytest.fixture
def things(running, tmp_path, blobs):
    """A service of items of which every other one has its label, and their folder."""
    X, y = blobs
    (tmp_path / "likely").mkdir()
    folder = tmp_path / "likely" / "things"
    with Collection.create(folder, StarRidge(12, random_state=0).fit(X, y), vectors="float16") as collection:
        collection.add(X, labels=[label if number % 2 else None for number, label in enumerate(y.tolist())])
    return running(folder), folder


def test_hits_are_as_likely_as_in_the_collection(things, blobs):
    (ask, folder), X = things, blobs[0][:3] + 0.2
    for options in ({"k": 50}, {"k": 50, "min_probability": 0.6}, {"k": 5, "radius": 0.75, "min_probability": 0.1}):
        body = {"vectors": X.tolist(), **options}
        answer = ask("POST", "/collections/things/search", json=body).json()["results"]
        with Collection(folder, read_only=True) as collection:
            expected = collection.search(X, **options)
        found = [[(hit["id"], hit["probability"]) for hit in result["hits"]] for result in answer]
        assert found == [[(hit.id, hit.probability) for hit in hits] for hits in expected]
        assert [result["total"] for result in answer] == [hits.total for hits in expected]
    assert all(hit["probability"] >= 0.1 for result in answer for hit in result["hits"])


def test_predictions_reject_what_the_collection_rejects(things, blobs):
    (ask, folder), X = things, np.vstack([blobs[0][:3], np.full((1, 6), 40.0)])
    body = {"vectors": X.tolist(), "probabilities": True}
    answer = ask("POST", "/collections/things/predict", json=body | {"reject": 0.1}).json()
    with Collection(folder, read_only=True) as collection:
        expected = collection.predict(X, probabilities=True, reject=0.1)
    assert (answer["labels"], answer["novelty"]) == (expected.labels, expected.novelty)
    assert answer["labels"][3] is None
    assert answer["probabilities"] == expected.probabilities
    assert ask("POST", "/collections/things/predict", json=body).json()["novelty"] is None
    assert ask("POST", "/collections/things/predict", json=body | {"reject": 2}).status_code == 422


def test_the_service_says_which_collections_know_probabilities(things, ask):
    assert things[0]("GET", "/collections/things").json()["hit_probabilities"] is True
    assert ask("GET", "/collections/things").json()["hit_probabilities"] is False


def test_what_is_no_probability_is_refused(things, ask):
    for least in (-0.1, 1.5, "likely"):
        body = {"items": [1], "min_probability": least}
        assert things[0]("POST", "/collections/things/search", json=body).status_code == 422
    refused = ask("POST", "/collections/things/search", json={"items": [1], "min_probability": 0.5})
    assert 400 <= refused.status_code < 500
    assert "a distance that is no probability" in refused.text


def test_the_page_has_a_slider_where_hits_have_a_probability(things, ask):
    likely, plain = page(things[0], "/explore/things?item=1").text, page(ask, "/explore/things?item=1").text
    assert 'name="min_probability"' in likely
    assert 'name="radius"' not in likely
    assert 'name="radius"' in plain
    assert 'name="min_probability"' not in plain


def test_the_slider_leaves_out_what_is_less_likely(things):
    ask, folder = things
    with Collection(folder, read_only=True) as collection:
        hits = collection.search(items=[1], k=101, rescore=False, min_probability=0.9)[0]
    text = page(ask, "/explore/things?item=1&k=100&min_probability=0.9&part=neighbors").text
    assert "at least 90% likely" in text
    found = text[text.index('aria-label="Most similar"') :]
    assert found.count('class="tile"') == len([hit for hit in hits if hit.id != 1][:100])
    none = page(ask, "/explore/things?item=2&min_probability=1&part=neighbors").text
    assert "Ask for less likely items" in none
    assert page(ask, "/explore/things?item=1&min_probability=2").status_code == 422


def test_a_match_of_hybrid_codes_counts_the_bits_for_the_neighborhood(running, tmp_path, blobs):
    X, y = blobs
    (tmp_path / "hybrid").mkdir()
    hasher = HybridHasher(10, random_state=0).fit(X, y)  # 4 bits hold the class; 6 features leave 6 directions
    with Collection.create(tmp_path / "hybrid" / "things", hasher, vectors="float16") as collection:
        collection.add(X)
    text = page(running(tmp_path / "hybrid" / "things"), "/explore/things?item=1&hit=3&part=details").text
    assert re.search(r"\d of 6 bits for the neighborhood differ", text)


def test_a_match_says_how_likely_it_is(things):
    text = page(things[0], "/explore/things?item=1&hit=3&part=details").text
    assert "likely of the same class" in text
    assert "The query looks most like" in text


def test_the_page_of_the_model_shows_how_right_probabilities_are(things, ask):
    text = page(things[0], "/explore/things/model").text
    assert "How right its percentages are" in text
    assert "The log loss is 0." in text
    assert "How right its percentages are" not in page(ask, "/explore/things/model").text
