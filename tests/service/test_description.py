"""The API is described for people, too: a page, and an example of every body that can be sent as JSON."""

import json
from html import unescape

from starshl.service.http import schemas

from .asking import PAGE


def bodies(description):
    """Yield method, path and the schema of each JSON body."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            name = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
            if name:
                yield method.upper(), path, name, description["components"]["schemas"][name]


def test_every_body_has_an_example_that_is_valid(shared):
    found = list(bodies(shared.app.openapi()))
    assert len(found) > 15
    for method, path, name, schema in found:
        assert schema.get("examples"), f"{method} {path} shows no body"
        for example in schema["examples"]:
            body = getattr(schemas, name).model_validate(example)
            for reading in ("to_filters", "to_options"):  # which know what a filter may be
                getattr(body, reading, lambda: None)()


def test_a_page_lists_all_addresses_with_their_examples_and_loads_nothing_from_elsewhere(shared):
    answer = shared("GET", "/docs", headers=PAGE)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    text = unescape(answer.text)
    assert "://" not in text
    description = shared.app.openapi()
    assert [path for path in description["paths"] if path not in text] == []
    examples = [json.dumps(schema["examples"][0]) for *_, schema in bodies(description)]
    assert [example for example in examples if example not in text] == []
