"""Rows of a table, with text and gaps, sent to a collection whose hasher prepares them."""

import shutil

import numpy as np
import pandas as pd
import pytest

from starshl import Collection, StarRidge
from starshl.client import Client, ServiceProblem
from starshl.data.features import Impute, Scale, TableFeatures
from starshl.hashers import PreparedHasher
from starshl.service import BackgroundServer, Service, create_app

from .asking import page, waited
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
        ({"rows": [{"age": 3, "city": "Rom"}]}, "rows[0] lacks 'income'"),
        ({"rows": [OLD, OLD | {"name": "x"}]}, "rows[1] has 'name'"),
        ({"rows": [[3, "Rom"]]}, "rows[0] has 2 values"),
        ({"rows": [OLD, OLD | {"income": "much"}]}, "rows[1] has 'much' in 'income'"),
        ({"rows": [[3, "4,5", "Rom"]]}, "rows[0] has '4,5' in 'income'"),
        ({"rows": [OLD | {"age": "inf"}]}, "rows[0] has 'inf' in 'age'"),
        ({"vectors": [[3.0, 4.0]]}, "takes rows of a table"),
        ({"rows": [OLD], "vectors": [[3.0]]}, "give either vectors, items"),
    ],
)
def test_what_a_row_must_have_is_said(ask, body, sentence):
    refused = ask("search", body)
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]


@pytest.fixture
def writable(folder, tmp_path):
    """A service over a copy of the collection."""
    copy = shutil.copytree(folder, tmp_path / "people")
    service = InProcess(create_app(lambda observer: Service([copy], observer=observer)))
    yield service
    service.close()


def test_rows_are_stored_with_what_belongs_to_them_and_found_again(writable, folder):
    root = "/collections/people/items"
    items = [
        {"row": OLD, "label": "old", "metadata": {"name": "Ada"}, "reference": "a"},
        {"row": [29, None, "Oslo"], "metadata": {"name": "Bob"}},
    ]
    written = writable("POST", root, json={"items": items})
    assert (written.status_code, written.json()["ids"]) == (201, [80, 81])
    found = writable("POST", "/collections/people/search", json={"rows": [OLD], "where": {"name": "Ada"}}).json()
    (hit,) = found["results"][0]["hits"]
    assert (hit["id"], hit["label"], hit["reference"]) == (80, "old", "a")
    twice = writable("PUT", root, json={"items": [{"id": 81, "row": OLD}]})
    assert (twice.status_code, twice.json()["ids"]) == (200, [81])
    with Collection(folder, read_only=True) as people:
        expected = people.hasher.encode_database(pd.DataFrame([OLD])).packed.tobytes().hex()
        keeps = people.vector_dtype is not None
    if keeps:
        first, second = writable("POST", f"{root}/get?vectors=true", json={"ids": [80, 81]}).json()["items"]
        assert first["vector"] == second["vector"]
    with writable.app.state.service.searcher("people").opened() as people:
        assert people.codes([81]).packed.tobytes().hex() == expected
        assert people.verify() == 82


def test_columns_that_items_have_as_metadata_are_kept_of_new_rows_too(writable):
    root = "/collections/people/items"
    writable("PATCH", root, json={"items": [{"id": 0, "metadata": {"city": "Rom", "age": 60, "name": "Ada"}}]})
    items = [{"row": [29, None, "Oslo"], "metadata": {"name": "Bob"}}, {"row": OLD, "metadata": {"age": 64}}]
    ids = writable("POST", root, json={"items": items}).json()["ids"]
    stored = writable("POST", f"{root}/get", json={"ids": ids}).json()["items"]
    assert [item["metadata"] for item in stored] == [
        {"age": 29, "city": "Oslo", "name": "Bob"},
        {"age": 64, "city": "Rom"},
    ]


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([{"row": OLD}, {"row": OLD | {"age": "old"}}], "items[1].row has 'old' in 'age'"),
        ([{"row": OLD}, {"row": {"age": 3}}], "items[1].row lacks 'income'"),
        ([{"row": [1]}], "items[0].row has 1 values"),
        ([{"row": OLD}, {"vector": [1.0]}], "or every item a row"),
        ([{"vector": [1.0]}], "takes rows of a table"),
    ],
)
def test_rows_that_cannot_be_stored_are_named(writable, items, sentence):
    refused = writable("POST", "/collections/people/items", json={"items": items})
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]


def test_columns_that_only_the_hasher_knows_by_name_are_named_and_so_are_gaps_that_nothing_fills(tmp_path):
    rows = np.array([[number, number % 5, CITIES[number % 3]] for number in range(40)], dtype=object)
    hasher = PreparedHasher([TableFeatures(impute=False)], StarRidge(4, random_state=0))
    hasher.fit(rows, np.arange(40) // 20)
    hasher.feature_names_in_ = np.array(["age", "income", "city"], dtype=object)  # as `starshl fit` leaves it
    Collection.create(tmp_path / "people", hasher).close()
    service = InProcess(create_app(lambda observer: Service([tmp_path / "people"], observer=observer)))
    try:
        for cell, sentence in (
            ("x", "rows[1] has 'x' in 'income'; the model was fitted on numbers there. Send a number."),
            (None, "rows[1] has no value in 'income', and the model was not fitted to fill gaps. Send a number."),
        ):
            body = {"rows": [[1, 2, "Rom"], [1, cell, "Rom"]]}
            assert service("POST", "/collections/people/encode", json=body).json()["detail"] == sentence
    finally:
        service.close()


@pytest.mark.server
def test_the_client_sends_rows(folder):
    app = create_app(lambda observer: Service([folder], read_only=True, observer=observer))
    with BackgroundServer(app) as server, Client(server.address) as client:
        people = client.collection("people")
        assert people.predict(rows=[OLD, YOUNG]).labels == ["old", "young"]
        assert people.search(rows=[OLD], k=1)[0].hits[0].label == "old"
        with pytest.raises(ServiceProblem, match="served for reading only"):
            people.add(rows=[OLD], labels=["old"], metadata=[{"name": "Ada"}])
        with pytest.raises(ValueError, match="2 values of label"):
            people.add(rows=[OLD], labels=["old", "young"])
        with pytest.raises(ValueError, match=r"rows=\[\{column: value\}\]"):
            people.predict([[70, "Rom"]])


def test_pages_show_neighbors_quality_and_a_lesson_of_table_rows(folder, tmp_path):
    with Collection(folder, read_only=True) as people:
        keeps = people.vector_dtype is not None
    service = InProcess(
        create_app(lambda observer: Service([shutil.copytree(folder, tmp_path / "people")], observer=observer))
    )
    try:
        assert page(service, "/explore/people?item=3&methods=1").status_code == 200
        if keeps:
            service("POST", "/explore/people/model/quality", root="")
            page(service, "/explore/people/teach")
            jobs = waited(
                lambda: service("GET", "/collections/people/jobs").json()["jobs"],
                lambda jobs: all(job["ended"] is not None for job in jobs),
            )
            assert {job["kind"]: job["state"] for job in jobs} == {
                "compare": "done",
                "measure quality": "done",
                "prepare teaching": "done",
            }, jobs
    finally:
        service.close()


def test_a_collection_of_vectors_says_that_it_takes_no_rows(template):
    service = InProcess(create_app(lambda observer: Service([template], read_only=True, observer=observer)))
    try:
        refused = service("POST", "/collections/things/search", json={"rows": [{"a": "b"}]})
        assert "not rows of a table" in refused.json()["detail"]
    finally:
        service.close()
