"""Whatever is sent, the answer is no error of the server, and every problem has its form."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

THINGS = "/collections/things"
ROUTES = [
    ("POST", f"{THINGS}/search"),
    ("POST", f"{THINGS}/items"),
    ("PUT", f"{THINGS}/items"),
    ("PATCH", f"{THINGS}/items"),
    ("POST", f"{THINGS}/items/get"),
    ("POST", f"{THINGS}/items/remove"),
    ("PUT", f"{THINGS}/labels"),
    ("POST", f"{THINGS}/encode"),
    ("POST", f"{THINGS}/predict"),
    ("POST", f"{THINGS}/snapshots"),
]
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(width=64), st.booleans(), st.none())
texts = st.text(max_size=8)
values = st.recursive(
    st.one_of(numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
vectors = st.one_of(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=8, max_size=8),
    st.lists(st.floats(-10, 10), max_size=9),
    values,
)
items = st.fixed_dictionaries(
    {},
    optional={
        "vector": vectors,
        "id": st.one_of(st.integers(0, 70), values),
        "label": st.one_of(st.sampled_from(["a", "b"]), values),
        "metadata": st.one_of(st.dictionaries(texts, values, max_size=2), values),
        "reference": values,
    },
)
ids = st.one_of(st.lists(st.integers(-3, 70), max_size=4), values)
bodies = st.one_of(
    values,
    st.fixed_dictionaries(
        {},
        optional={
            "vectors": st.one_of(st.lists(vectors, max_size=3), values),
            "items": st.one_of(st.lists(items, max_size=3), ids),
            "ids": ids,
            "k": st.one_of(st.integers(1, 20), values),
            "radius": st.one_of(st.integers(0, 30), values),
            "where": st.one_of(st.dictionaries(st.sampled_from(["price", "x", '"', ""]), values, max_size=2), values),
            "labels": st.one_of(st.lists(st.sampled_from(["a", "b", 1, True]), max_size=3), values),
            "among": ids,
            "rescore": values,
            "oversample": values,
            "metric": st.sampled_from(["euclidean", "cosine", "other"]),
            "by_scores": values,
            "explain": st.one_of(st.booleans(), values),
            "name": values,
        },
    ),
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(route=st.sampled_from(ROUTES), body=bodies)
def test_no_body_makes_the_service_fail(shared, route, body):
    content = json.dumps(body)
    response = shared(*route, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code < 500, (route, content, response.text)
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == response.status_code


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    parts=st.lists(
        st.one_of(
            st.sampled_from(
                ["collections", "things", "items", "search", "jobs", "snapshots", "restore", "..", "%2e%2e", "%00", "7"]
            ),
            st.text(
                st.characters(codec="ascii", exclude_characters="/?#\\", min_codepoint=33, max_codepoint=126),
                max_size=6,
            ),
        ),
        max_size=5,
    ),
)
def test_no_address_makes_the_service_fail(shared, method, parts):
    response = shared(method, "/" + "/".join(parts))
    assert response.status_code < 500, (method, parts, response.text)


@pytest.mark.slow
@settings(
    max_examples=10_000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(route=st.sampled_from(ROUTES), body=bodies)
def test_no_body_of_ten_thousand_makes_the_service_fail(shared, route, body):
    content = json.dumps(body)
    response = shared(*route, content=content, headers={"Content-Type": "application/json"})
    assert response.status_code < 500, (route, content, response.text)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "items", {"items": [{"vector": [0.0] * 8, "metadata": {"note": "\ud800"}}]}),
        ("POST", "items", {"items": [{"vector": [0.0] * 8, "metadata": {"\ud800": [1]}}]}),
        ("POST", "items", {"items": [{"vector": [0.0] * 8, "label": "\ud800"}]}),
        ("POST", "items", {"items": [{"vector": [0.0] * 8, "reference": "\ud800"}]}),
        ("PUT", "labels", {"items": [{"id": 5, "label": "\ud800"}]}),
        ("POST", "search", {"items": [3], "k": 2, "where": {"\ud800": 1}}),
        ("POST", "search", {"items": [3], "k": 2, "where": {"free": "\ud800"}}),
        ("POST", "search", {"items": [3], "k": 2, "labels": ["\ud800"]}),
        ("POST", "items/count", {"where": {"free": {"in": ["\ud800"]}}}),
    ],
)
def test_half_a_surrogate_pair_is_refused_and_nothing_else_suffers(ask, method, path, body):
    headers = {"Content-Type": "application/json"}
    answer = ask(method, f"/collections/things/{path}", content=json.dumps(body), headers=headers)
    assert answer.status_code == 422
    assert "half of a surrogate pair" in answer.json()["detail"]
    assert ask("POST", "/collections/things/search", json={"items": [3], "k": 60}).status_code == 200
