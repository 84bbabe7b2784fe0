"""Rows of a table, with text and gaps, sent to a collection whose hasher prepares them."""

import numpy as np
import pandas as pd
import pytest

from starshl import Collection, StarRidge
from starshl.client import Client
from starshl.features import Impute, PreparedHasher, Scale, TableFeatures
from starshl.web import Service
from starshl.web.http import BackgroundServer, create_app

from .conftest import InProcess

CITIES = ["Rom", "Oslo", "Paris"]
OLD, YOUNG = {"age": 63, "income": 71_000.5, "city": "Rom"}, {"income": 31_000, "city": "Oslo", "age": 29}


@pytest.fixture(scope="module", params=["float16", None])
def folder(request, tmp_path_factory):
    """A collection of table rows, with kept vectors or without."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    table = pd.DataFrame(
        {
            "age": rng.normal(30 + 30 * y, 3),
            "income": rng.normal(30_000 + 40_000 * y, 3_000),
            "city": [CITIES[city] for city in rng.integers(0, 3, 80)],
        }
    )
    hasher = PreparedHasher([TableFeatures(), Impute(), Scale()], StarRidge(8, random_state=0))
    hasher.fit(table, np.array(["young", "old"])[y])
    folder = tmp_path_factory.mktemp("tables") / "people"
    with Collection.create(folder, hasher, vectors=request.param) as people:
        people.add(table, labels=np.array(["young", "old"])[y])
    return folder


@pytest.fixture
def ask(folder):
    service = InProcess(create_app(lambda observer: Service([folder], read_only=True, observer=observer)))
    yield lambda what, body: service("POST", f"/collections/people/{what}", json=body)
    service.close()


def test_rows_are_searched_for_encoded_and_classified(ask, folder):
    assert ask("predict", {"rows": [OLD, YOUNG]}).json()["labels"] == ["old", "young"]
    as_lists = [[63, 71_000.5, "Rom"], [29, 31_000, "Oslo"]]
    codes = ask("encode", {"rows": as_lists}).json()["codes"]
    assert codes == ask("encode", {"rows": [OLD, YOUNG]}).json()["codes"]
    found = ask("search", {"rows": [OLD, YOUNG], "k": 3}).json()["results"]
    assert [{hit["label"] for hit in each["hits"]} for each in found] == [{"old"}, {"young"}]
    with Collection(folder, read_only=True) as people:
        expected = people.search(pd.DataFrame([OLD]), k=3)[0]
    assert [hit["id"] for hit in found[0]["hits"]] == [hit.id for hit in expected]
    assert ask("search", {"rows": [OLD], "k": 3, "explain": True, "reject": 0.01}).status_code == 200


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"rows": [{"age": 3, "city": "Rom"}]}, "rows[0] lacks 'income'. A row has 3 values: age, income, city."),
        ({"rows": [OLD, OLD | {"name": "x"}]}, "rows[1] has 'name', which is no column here"),
        ({"rows": [[3, "Rom"]]}, "rows[0] has 2 values; a row has 3: age, income, city."),
        ({"vectors": [[3.0, 4.0]]}, 'This collection takes rows of a table, as `rows`: [{"age": ..., "income": ...'),
        ({"rows": [OLD], "vectors": [[3.0]]}, "give either vectors, items, texts or rows"),
    ],
)
def test_what_a_row_must_have_is_said(ask, body, sentence):
    refused = ask("search", body)
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]


def test_the_client_sends_rows(folder):
    app = create_app(lambda observer: Service([folder], read_only=True, observer=observer))
    with BackgroundServer(app) as server, Client(server.address) as client:
        people = client.collection("people")
        assert people.predict(rows=[OLD, YOUNG]).labels == ["old", "young"]
        assert people.search(rows=[OLD], k=1)[0].hits[0].label == "old"
        with pytest.raises(ValueError, match=r"rows of a table as rows=\[\{column: value\}\]"):
            people.predict([[70, "Rom"]])


def test_a_collection_of_vectors_says_that_it_takes_no_rows(template):
    service = InProcess(create_app(lambda observer: Service([template], read_only=True, observer=observer)))
    try:
        refused = service("POST", "/collections/things/search", json={"rows": [{"a": "b"}]})
        assert "takes vectors, not rows of a table" in refused.json()["detail"]
    finally:
        service.close()
