"""What the service says of wrong bodies: what arrived, what is allowed, and nothing about its own files."""

import pytest


@pytest.mark.parametrize(
    ("method", "what", "body", "sentence"),
    [
        (
            "POST",
            "predict",
            {"vectors": [[1.0]], "proba": True},
            "body.proba: there is no such field; the fields here are",
        ),
        ("POST", "predict", {"proba": True}, "vectors, texts, rows, probabilities"),
        ("POST", "search", {"items": [3], "k": "5"}, "body.k: Input should be a valid integer, and text arrived"),
        (
            "PUT",
            "labels",
            {"ids": [3], "labels": ["a"]},
            "body.items: this field is required; the fields here are items",
        ),
        (
            "PUT",
            "labels",
            {"items": [{"id": 3}]},
            "body.items.0.label: this field is required; the fields here are id, label",
        ),
        (
            "POST",
            "items",
            {"items": [{"vec": []}]},
            "the fields here are vector, text, row, id, label, metadata, reference",
        ),
    ],
)
def test_wrong_fields_are_answered_with_the_right_ones(ask, method, what, body, sentence):
    refused = ask(method, f"/collections/things/{what}", json=body)
    assert refused.status_code == 422
    assert sentence in str(refused.json())


def test_a_model_that_cannot_be_read_is_refused_without_a_path_of_the_service(ask):
    path = "/collections/things/model"
    refused = ask("PUT", path, content=b"not a model", headers={"Content-Type": "application/octet-stream"})
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("The body is not a readable model file")
