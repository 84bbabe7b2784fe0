"""A body that is wrong everywhere is refused at its first wrong value, and takes little memory."""

import json
import tracemalloc

import pytest
from pydantic import ValidationError

from starshl.service.http import schemas

N = 20_000
BODIES = {
    "numbers as text": (schemas.SearchRequest, {"vectors": [[""] * N]}),
    "vectors as text": (schemas.SearchRequest, {"vectors": [["1"]] * 1000}),
    "ids": (schemas.SearchRequest, {"items": ["1"] * 1000}),
    "texts": (schemas.VectorsRequest, {"texts": [1] * 1000}),
    "cells": (schemas.VectorsRequest, {"rows": [[[]] * 10_000]}),
    "named cells": (schemas.VectorsRequest, {"rows": [{str(i): [] for i in range(10_000)}]}),
    "too many names": (schemas.SearchRequest, {"rows": [{str(i): 1 for i in range(N)}]}),
    "a row to store": (schemas.AddRequest, {"items": [{"row": {str(i): {} for i in range(N)}}]}),
    "fields": (schemas.FieldsRequest, {"fields": {str(i): 1 for i in range(N)}}),
    "rows": (schemas.VectorsRequest, {"rows": [[[]]] * 1000}),
    "items": (schemas.AddRequest, {"items": [{"vector": ["a"]}] * 10_000}),
    "updates": (schemas.UpdateRequest, {"items": [1] * 10_000}),
    "labels": (schemas.LabelsRequest, {"items": [{"id": 1, "label": []}] * 10_000}),
    "removed ids": (schemas.RemoveRequest, {"ids": [[]] * 10_000}),
    "wanted labels": (schemas.FilterRequest, {"labels": [[]] * 1000}),
    "among": (schemas.FilterRequest, {"among": [[]] * 100_000}),
    "searches": (schemas.SearchesRequest, {"searches": [{"vectors": [[""] * 100] * 100}] * 100}),
    "recommended": (schemas.RecommendRequest, {"like": [[]] * 1000, "unlike": [[]] * 1000}),
    "unknown fields": (schemas.SearchRequest, {str(i): 0 for i in range(N)}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_wrong_body_has_few_errors(name):
    model, body = BODIES[name]
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    assert 1 <= caught.value.error_count() <= 25


def test_a_wrong_body_of_a_megabyte_takes_no_more_memory_than_a_right_one(shared):
    def peak(body):
        sent = json.dumps(body)
        tracemalloc.start()
        answer = shared(
            "POST", "/collections/things/search", content=sent, headers={"Content-Type": "application/json"}
        )
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return answer.status_code, most

    peak({"vectors": [[1.5]]})
    right = peak({"vectors": [[1.5] * 200_000]})
    wrong = peak({"vectors": [["1.5"] * 200_000]})
    assert (right[0], wrong[0]) == (422, 422)
    assert wrong[1] < 4 * right[1]


def test_a_body_of_millions_of_empty_lists_is_refused_unread(shared):
    sent = '{"rows": [' + ",".join(["[]"] * 600_000) + "]}"
    answer = shared("POST", "/collections/things/search", content=sent, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "lists and objects" in answer.json()["detail"]


def test_the_place_of_a_wrong_cell_names_the_row_alone(shared):
    answer = shared("POST", "/collections/things/search", json={"rows": [{"a": []}]})
    assert answer.json()["errors"][0]["where"] == "body.rows.0"


def test_a_large_right_body_is_answered_as_a_small_one(shared, rows):
    large = {"vectors": [rows[0].tolist()], "k": 1, "where": None}
    padded = json.dumps(large) + " " * 300_000
    sent = {"content": padded, "headers": {"Content-Type": "application/json"}}
    found = shared("POST", "/collections/things/search", **sent)
    assert found.json() == shared("POST", "/collections/things/search", json=large).json()
    wrong = shared(
        "POST",
        "/collections/things/search",
        content=json.dumps({"vectors": 1}) + " " * 300_000,
        headers={"Content-Type": "application/json"},
    )
    assert (wrong.status_code, wrong.json()["errors"][0]["where"]) == (422, "body.vectors")
