"""What answers hold besides what the routes' tests look at."""

import json
from dataclasses import asdict

import numpy as np

from starshl import Collection, StarRidge
from starshl.collection import Explanation


def test_an_explanation_names_the_views_that_weigh_most(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.standard_normal((40, 4)) + 3 * y[:, None]
    hasher = StarRidge(8, views={"left": [0, 1], "right": [2, 3]}, random_state=0).fit(X, y)
    with Collection.create(tmp_path / "things", hasher) as things:
        things.add(X, labels=y)
        (why,) = things.explain(X[:1], [0])
    assert {name for name, _ in why.views} == {"left", "right"}
    assert Explanation.of(json.loads(json.dumps(asdict(why)))) == why


def test_an_answer_that_repeats_much_metadata_is_refused(shared, monkeypatch):
    monkeypatch.setattr("starshl.service.http.search.MOST_METADATA", 1000)
    address = "/collections/things/search"
    assert shared("POST", address, json={"items": [0] * 50, "k": 1}).status_code == 200
    refused = shared("POST", address, json={"items": [0] * 100, "k": 1})
    assert (refused.status_code, refused.json()["type"]) == (413, "/problems/too-large")
    several = {"searches": [{"items": [0] * 50, "k": 1}] * 2}
    assert shared("POST", f"{address}/batch", json=several).status_code == 413
