"""What the addresses answer."""

import json

import pytest

THINGS = "/collections/things"


def problem(response, status, kind):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert (found["status"], found["type"]) == (status, f"/problems/{kind}")
    assert found["request_id"] == response.headers["x-request-id"]
    return found["detail"]


def test_collections_say_what_they_are(shared):
    assert shared("GET", "/collections").json()["collections"] == [shared("GET", THINGS).json()]
    info = shared("GET", THINGS).json()
    assert (info["name"], info["n_bits"], info["n_columns"], info["vectors"]) == ("things", 24, 8, "float16")
    assert info["method"] == "LSHash"


def test_a_search_finds_filters_and_explains(shared, rows):
    body = {"vectors": rows[:2].tolist(), "k": 2, "where": {"price": {"<": 50}}, "labels": ["a", "b"], "explain": True}
    first, second = shared("POST", f"{THINGS}/search", json=body).json()["results"]
    assert (first["hits"][0]["id"], second["hits"][0]["id"]) == (0, 1)
    assert first["hits"][0]["reference"] == "0.png"
    assert first["hits"][0]["explanation"]["text"].startswith("Item 0 differs from the query in 0 of 24 bits")
    assert {hit["label"] for hit in first["hits"] + second["hits"]} <= {"a", "b"}


def test_searches_sent_together_give_what_they_give_alone(shared, rows):
    requests = [("POST", f"{THINGS}/search", {"vectors": [row.tolist()], "k": 3}) for row in rows[:20]]
    together = [response.json() for response in shared.together(*requests)]
    alone = [shared(method, path, json=body).json() for method, path, body in requests]
    assert together == alone


def test_items_are_added_replaced_labeled_updated_and_removed(ask, rows):
    vector = rows[0].tolist()
    added = ask("POST", f"{THINGS}/items", json={"items": [{"vector": vector, "label": "a"}, {"vector": vector}]})
    assert (added.status_code, added.json()) == (201, {"ids": [60, 61], "n_items": 2, "repeated": False, "notes": []})
    assert ask("PUT", f"{THINGS}/items", json={"items": [{"id": 60, "vector": vector}]}).status_code == 200
    assert ask("GET", f"{THINGS}/items/60").json()["label"] is None
    labels = {"items": [{"id": 60, "label": "c"}, {"id": 0, "label": None}]}
    assert ask("PUT", f"{THINGS}/labels", json=labels).json()["ids"] == [60, 0]
    assert ask("PATCH", f"{THINGS}/items", json={"items": [{"id": 60, "metadata": {"x": [1]}}]}).status_code == 200
    (found,) = ask("POST", f"{THINGS}/items/get?vectors=true", json={"ids": [60]}).json()["items"]
    assert (found["label"], found["metadata"]) == ("c", {"x": [1]})
    assert found["vector"] == pytest.approx(vector, rel=1e-3)
    assert ask("DELETE", f"{THINGS}/items/61").status_code == 200
    assert ask("POST", f"{THINGS}/items/remove", json={"ids": [60, 59]}).status_code == 200
    assert ask("GET", THINGS).json()["n_items"] == 59
    problem(ask("GET", f"{THINGS}/items/60"), 404, "not-found")


def test_items_are_listed_in_pages(shared):
    page = shared("GET", f"{THINGS}/items?limit=2&after=10").json()
    assert ([item["id"] for item in page["items"]], page["next"]) == ([11, 12], 12)
    assert shared("GET", f"{THINGS}/items?after=58").json()["next"] is None


def test_a_batch_is_stored_completely_or_not_at_all(ask, rows):
    items = [{"vector": rows[0].tolist(), "id": 70}, {"vector": rows[1].tolist(), "id": 5}]
    assert "already in the collection" in problem(
        ask("POST", f"{THINGS}/items", json={"items": items}), 422, "invalid-request"
    )
    problem(ask("GET", f"{THINGS}/items/70"), 404, "not-found")
    problem(ask("POST", f"{THINGS}/items/remove", json={"ids": [5, 999]}), 404, "not-found")
    assert ask("GET", f"{THINGS}/items/5").status_code == 200


def test_a_repeated_key_stores_once_and_another_body_is_refused(ask, rows):
    body, key = {"items": [{"vector": rows[0].tolist()}]}, {"Idempotency-Key": "a-key"}
    first = ask("POST", f"{THINGS}/items", json=body, headers=key).json()
    again = ask("POST", f"{THINGS}/items", json=body, headers=key).json()
    assert first == {"ids": [60], "n_items": 1, "repeated": False, "notes": []}
    assert again == {"ids": [60], "n_items": 1, "repeated": True, "notes": []}
    other = {"items": [{"vector": rows[1].tolist()}]}
    problem(ask("POST", f"{THINGS}/items", json=other, headers=key), 422, "idempotency-key-reused")
    problem(ask("DELETE", f"{THINGS}/items/3", headers=key), 422, "idempotency-key-reused")
    assert ask("GET", THINGS).json()["n_items"] == 61
    problem(ask("DELETE", f"{THINGS}/items/3", headers={"Idempotency-Key": "a b"}), 422, "invalid-request")


def test_declared_fields_are_shown_and_kept(ask):
    assert ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "int"}}).json()["fields"] == {"price": "int"}
    body = {"items": [5], "where": {"price": {">": 57}}}
    hits = ask("POST", f"{THINGS}/search", json=body).json()["results"][0]["hits"]
    assert sorted(hit["id"] for hit in hits) == [58, 59]
    problem(ask("PUT", f"{THINGS}/fields", json={"fields": {"price": "str"}}), 422, "invalid-request")


def test_codes_are_hexadecimal(shared, rows):
    answer = shared("POST", f"{THINGS}/encode", json={"vectors": rows[:2].tolist()}).json()
    assert answer["n_bits"] == 24
    assert [len(bytes.fromhex(code)) for code in answer["codes"]] == [3, 3]


def test_a_hasher_without_classes_predicts_nothing_and_says_so(shared, rows):
    response = shared("POST", f"{THINGS}/predict", json={"vectors": rows[:1].tolist()})
    assert "learns codes, not classes" in problem(response, 422, "invalid-request")


@pytest.mark.parametrize(
    ("method", "path", "settings", "status", "kind", "words"),
    [
        ("GET", "/nowhere", {}, 404, "not-found", "nothing at this address"),
        ("GET", "/collections/other", {}, 404, "not-found", "There are: things"),
        ("DELETE", THINGS, {}, 405, "method-not-allowed", "does not take this method"),
        ("GET", f"{THINGS}/items/9999", {}, 404, "not-found", "9999"),
        ("GET", f"{THINGS}/items/abc", {}, 422, "invalid-request", "path.item"),
        ("GET", f"{THINGS}/items/{2**63}", {}, 422, "invalid-request", "path.item"),
        ("GET", f"{THINGS}/items?limits=3", {}, 422, "invalid-request", "no parameter 'limits'; it takes after, limit"),
        ("GET", f"{THINGS}/jobs/none", {}, 404, "not-found", "no such job"),
        ("GET", f"{THINGS}/snapshots/none", {}, 404, "not-found", "no snapshot 'none'"),
        (
            "POST",
            f"{THINGS}/search",
            {"json": {}},
            422,
            "invalid-request",
            "body: give either vectors, items, texts or rows",
        ),
        (
            "POST",
            f"{THINGS}/search",
            {"json": {"items": [1], "size": 3}},
            422,
            "invalid-request",
            "body.size: there is no such field",
        ),
        ("POST", f"{THINGS}/search", {"json": {"items": [1], "k": "3"}}, 422, "invalid-request", "body.k"),
        ("POST", f"{THINGS}/search", {"json": {"items": [1], "k": 0}}, 422, "invalid-request", "body.k"),
        ("POST", f"{THINGS}/search", {"json": {"items": [999]}}, 404, "not-found", "999"),
        ("POST", f"{THINGS}/search", {"json": {"vectors": [[1]]}}, 422, "invalid-request", "has 1 numbers"),
        ("POST", f"{THINGS}/items", {"json": {"items": [{"vector": [1]}]}}, 422, "invalid-request", "items[0] has 1"),
        ("POST", f"{THINGS}/search", {"json": {"vectors": [[1e200] * 8]}}, 422, "invalid-request", "1e+100"),
        ("POST", f"{THINGS}/search", {"json": {"items": [1], "where": {"prise": 3}}}, 422, "invalid-request", "price"),
        (
            "POST",
            f"{THINGS}/search",
            {"json": {"items": [1], "where": {"price": {"~": 3}}}},
            422,
            "invalid-request",
            "~",
        ),
        (
            "POST",
            f"{THINGS}/search",
            {"json": {"items": [1], "labels": ["z"] * 2000}},
            422,
            "invalid-request",
            "labels",
        ),
        (
            "POST",
            f"{THINGS}/search",
            {"json": {"items": [1], "where": {"price": {"in": [1] * 1000}}}},
            422,
            "invalid-request",
            "up to 500 names and values",
        ),
        ("POST", f"{THINGS}/search", {"content": "x=1"}, 415, "unsupported-media-type", "application/json"),
        (
            "POST",
            f"{THINGS}/items",
            {"json": {"items": [{"vector": [1] * 8, "label": 3}]}},
            422,
            "invalid-request",
            "text",
        ),
        ("PUT", f"{THINGS}/items", {"json": {"items": [{"vector": [1] * 8}]}}, 422, "invalid-request", "needs the id"),
        (
            "POST",
            f"{THINGS}/items",
            {"json": {"items": [{"vector": [1] * 8, "label": 1.5}]}},
            422,
            "invalid-request",
            "label",
        ),
    ],
)
def test_what_is_wrong_is_said(shared, method, path, settings, status, kind, words):
    assert words in problem(shared(method, path, **settings), status, kind)


@pytest.mark.parametrize(
    "text", ['{"k": NaN}', "{", '{"k": 1, "k": 2}', "[" * 5000, '{"k": 1e999}', "\xff", "9" * 6000]
)
def test_bodies_that_are_not_plain_json_are_refused(shared, text):
    headers = {"Content-Type": "application/json"}
    problem(shared("POST", f"{THINGS}/search", content=text.encode("latin-1"), headers=headers), 400, "bad-request")


def test_an_unexpected_error_tells_the_client_nothing_but_its_id(ask, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("starshl.service.searcher.Searcher.info", broken)
    response = ask("GET", THINGS, headers={"X-Request-Id": "mine-1"})
    assert "secret" not in response.text
    problem(response, 500, "internal-error")
    assert response.headers["x-request-id"] == "mine-1"
    assert "secret detail" in caplog.text


def test_request_ids_that_could_forge_a_log_are_replaced(shared):
    assert shared("GET", "/health/live", headers={"X-Request-Id": "a b"}).headers["x-request-id"] != "a b"


def test_each_request_is_logged_without_secrets(shared, caplog):
    with caplog.at_level("INFO", logger="starshl.service.requests"):
        shared("GET", f"{THINGS}/items?limit=77", headers={"Authorization": "Bearer secretsecretsecret"})
    (record,) = [record for record in caplog.records if record.name == "starshl.service.requests"]
    assert (record.fields["method"], record.fields["path"], record.fields["status"]) == (
        "GET",
        f"/api/v1{THINGS}/items",
        200,
    )
    assert "limit" not in json.dumps(record.fields)
    assert "secretsecret" not in json.dumps(record.fields)


def test_metrics_count_by_route_and_collection(ask):
    ask("POST", f"{THINGS}/search", json={"items": [1, 2]})
    ask("GET", "/nowhere/at/all")
    ask("DELETE", f"{THINGS}/items/3")
    text = ask("GET", "/metrics").text
    route = "/api/v1/collections/{name}/search"
    assert f'starshl_requests_total{{method="POST",route="{route}",status="200"}} 1.0' in text
    assert 'starshl_queries_total{collection="things"} 2.0' in text
    assert 'starshl_items{collection="things"} 59.0' in text
    assert 'starshl_changed_items_total{collection="things",kind="remove"} 1.0' in text
    assert "nowhere" not in text


def test_health_needs_the_collections_only_to_be_ready(ask):
    assert ask("GET", "/health/ready").json() == {"status": "ready"}
    ask.app.state.service.is_closing = True
    problem(ask("GET", "/health/ready"), 503, "busy")
    assert ask("GET", "/health/live").status_code == 200
