"""Pictures and texts sent to the service to be encoded, classified or stored."""

import asyncio
import io
import shutil

import httpx
import numpy as np
import pytest
from PIL import Image

from starshl.client import AsyncClient, Client
from starshl.service import Service, create_app

from .conftest import InProcess
from .drawn import BLUE


@pytest.fixture
def ask(raw_collections, tmp_path):
    """Ask a service over a copy of the collections."""
    folders = [shutil.copytree(raw_collections / name, tmp_path / name) for name in ("pictures", "texts")]
    service = InProcess(create_app(lambda observer: Service(folders, observer=observer)))
    yield service
    service.close()


def _send(ask, what, content=BLUE, kind="image/png", name="pictures", headers=None, **params):
    path = f"/collections/{name}/{what}/picture"
    return ask("POST", path, content=content, headers={"Content-Type": kind, **(headers or {})}, params=params)


def test_a_picture_is_encoded_and_classified_as_its_vector_is(ask):
    with ask.app.state.service.searcher("pictures").opened() as collection:
        vectors = collection.embed([Image.open(io.BytesIO(BLUE))]).tolist()
    for what, options in (("encode", {}), ("predict", {"probabilities": True})):
        sent = _send(ask, what, **dict.fromkeys(options, "true"))
        assert sent.status_code == 200
        assert sent.json() == ask("POST", f"/collections/pictures/{what}", json={"vectors": vectors} | options).json()


def test_a_picture_is_stored_with_its_preview_and_found_again(ask):
    stored = _send(ask, "items", label="blue", metadata='{"year": 1999}', reference="sky.png")
    assert (stored.status_code, stored.json()["ids"]) == (201, [24])
    item = ask("GET", "/collections/pictures/items/24").json()
    assert (item["label"], item["metadata"], item["reference"]) == ("blue", {"year": 1999}, "sky.png")
    preview = ask("GET", "/collections/pictures/items/24/preview").content
    assert Image.open(io.BytesIO(preview)).size == (40, 30)
    found = _send(ask, "search", k=1, where='{"year": 1999}').json()["results"][0]["hits"]
    assert [hit["id"] for hit in found] == [24]


def test_a_picture_sent_twice_with_one_key_is_stored_once_and_with_other_parameters_refused(ask):
    headers = {"Idempotency-Key": "sky"}
    sent = [_send(ask, "items", headers=headers, label="blue") for _ in range(2)]
    assert [(each.status_code, each.json()["ids"]) for each in sent] == [(201, [24])] * 2
    assert sent[1].json()["repeated"]
    assert _send(ask, "items", headers=headers, label="red").status_code == 422
    assert ask("POST", "/collections/pictures/items/count", json={}).json()["count"] == 25


@pytest.mark.parametrize(
    ("settings", "status", "message"),
    [
        ({"content": b"not a picture"}, 422, "not a picture"),
        ({"kind": "text/plain"}, 415, "has the type 'text/plain'"),
        ({"name": "texts"}, 422, "takes no pictures"),
        ({"metadata": "[1]"}, 422, "must be a JSON object"),
        ({"label": ""}, 422, "A label has 1"),
        ({"id": "3"}, 422, "id 3 is already"),
        ({"id": "three"}, 422, "valid integer"),
        ({"colour": "red"}, 422, "no parameter 'colour'"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_a_picture_that_cannot_be_stored_changes_nothing(ask, settings, status, message):
    refused = _send(ask, "items", **settings)
    assert (refused.status_code, message in refused.json()["detail"]) == (status, True), refused.text
    assert ask("POST", "/collections/pictures/items/count", json={}).json()["count"] == 24


def test_texts_are_stored_with_their_vectors_and_become_titles(ask):
    items = [{"text": "a bowl of soup", "label": "food"}, {"text": "a car", "metadata": {"text": "own title"}}]
    stored = ask("POST", "/collections/texts/items", json={"items": items})
    assert (stored.status_code, stored.json()["ids"]) == (201, [24, 25])
    got = ask("POST", "/collections/texts/items/get?vectors=true", json={"ids": [24, 25]}).json()["items"]
    assert [item["metadata"] for item in got] == [{"text": "a bowl of soup"}, {"text": "own title"}]
    with ask.app.state.service.searcher("texts").opened() as collection:
        expected = collection.embed(["a bowl of soup", "a car"])
    assert np.allclose([item["vector"] for item in got], expected, atol=1e-3), "kept as 16-bit numbers"
    replaced = ask("PUT", "/collections/texts/items", json={"items": [{"id": 25, "text": "an engine"}]})
    assert replaced.status_code == 200
    assert ask("GET", "/collections/texts/items/25").json()["metadata"] == {"text": "an engine"}


@pytest.mark.parametrize(
    ("name", "items", "message"),
    [
        ("texts", [{"text": "soup"}, {"vector": [1.0]}], "give every item a vector"),
        ("texts", [{"text": "soup", "vector": [1.0]}], "give every item a vector"),
        ("texts", [{"label": "food"}], "give every item a vector"),
        ("pictures", [{"text": "soup"}], "so it takes no texts"),
    ],
)
def test_items_that_are_neither_vectors_nor_texts_are_refused(ask, name, items, message):
    refused = ask("POST", f"/collections/{name}/items", json={"items": items})
    assert (refused.status_code, message in refused.json()["detail"]) == (422, True)


def test_clients_store_and_classify_pictures_and_texts(ask, tmp_path):
    (tmp_path / "blue.png").write_bytes(BLUE)

    async def ask_all():
        async with AsyncClient("http://localhost", transport=httpx.ASGITransport(ask.app)) as client:
            pictures, texts = client.collection("pictures"), client.collection("texts")
            code = await pictures.encode_picture(BLUE)
            prediction = await pictures.predict_picture(tmp_path / "blue.png", probabilities=True)
            stored = await pictures.add_picture(BLUE, id=77, label="blue", metadata={"year": 1}, reference="sky.png")
            added = await texts.add(texts=["a bowl of soup"], labels=["food"])
            replaced = await texts.upsert(texts=["a car"], ids=added.ids)
            items = await pictures.get(stored.ids) + await texts.get(replaced.ids)
            return code, prediction, [(item.id, item.label, item.metadata) for item in items]

    code, prediction, items = asyncio.run(ask_all())
    assert code == _send(ask, "encode").json()["codes"][0]
    assert prediction.labels == ["blue"]
    assert prediction.probabilities[0][prediction.classes.index("blue")] > 0.5
    assert items == [(77, "blue", {"year": 1}), (24, None, {"text": "a car"})]


def test_the_blocking_client_sends_the_same_requests():
    seen = []

    def answer(request):
        seen.append((request.url.raw_path.decode().rpartition("collections/")[2], "idempotency-key" in request.headers))
        if "encode" in request.url.path:
            return httpx.Response(200, json={"n_bits": 8, "codes": ["ff"]})
        if "predict" in request.url.path:
            return httpx.Response(200, json={"labels": ["blue"]})
        return httpx.Response(201, json={"ids": [3], "n_items": 1, "repeated": False})

    with Client("http://localhost", transport=httpx.MockTransport(answer)) as client:
        album = client.collection("album")
        assert album.encode_picture(BLUE) == "ff"
        assert album.predict_picture(BLUE).labels == ["blue"]
        assert album.add_picture(BLUE, label=True).ids == [3]
        assert album.add(texts=["soup"]).ids == [3]
        assert album.upsert(texts=["soup"], ids=[3]).ids == [3]
        with pytest.raises(ValueError, match="Give either X, texts"):
            album.add()
        with pytest.raises(ValueError, match="2 values of label"):
            album.add(texts=["soup"], labels=["food", "food"])
    assert seen == [
        ("album/encode/picture", False),
        ("album/predict/picture?probabilities=false", False),
        ("album/items/picture?label=true", True),
        ("album/items", True),
        ("album/items", True),
    ]
