"""Pictures and texts sent to the service: searched for, refused with a reason, and shown as previews."""

import asyncio
import io
import shutil
import threading
from concurrent.futures import wait

import httpx
import numpy as np
import pytest
from PIL import Image

from starshl import Collection
from starshl.client import AsyncClient, Client, ServiceProblem
from starshl.collection import Preview
from starshl.data.features import Embedder, Reduce, Text
from starshl.hashers.baselines import LSHash
from starshl.service import Service, create_app, inputs
from starshl.service.errors import BusyError

from .conftest import InProcess
from .drawn import BLUE, COLORS, encoded

WORDS = "Use other words."


@pytest.fixture(scope="module")
def app(raw_collections, tmp_path_factory):
    """A service over a copy of the collections."""
    place = tmp_path_factory.mktemp("copy")
    folders = [shutil.copytree(raw_collections / name, place / name) for name in ("pictures", "texts")]
    return create_app(lambda observer: Service(folders, observer=observer))


@pytest.fixture(scope="module")
def ask(app):
    service = InProcess(app)
    service("PATCH", "/collections/pictures/items", json={"items": [{"id": 0, "metadata": {"year": 2024}}]})
    yield service
    service.close()


def _search(ask, content, kind="image/png", **params):
    return ask(
        "POST", "/collections/pictures/search/picture", content=content, headers={"Content-Type": kind}, params=params
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_picture_finds_pictures_like_it(ask, kind):
    content = encoded(Image.new("RGB", (300, 200), COLORS["blue"]), kind)
    answer = _search(ask, content, f"image/{kind.lower()}", k=4)
    assert answer.status_code == 200
    assert [hit["label"] for hit in answer.json()["results"][0]["hits"]] == ["blue"] * 4


def test_options_of_a_search_by_picture_are_parameters(ask):
    answer = _search(ask, BLUE, k=3, labels="red", explain="true").json()
    hits = answer["results"][0]["hits"]
    assert [hit["label"] for hit in hits] == ["red"] * 3
    assert hits[0]["explanation"] is not None
    near = _search(ask, BLUE, radius=10_000, k=2).json()["results"][0]
    assert (len(near["hits"]), near["total"]) == (2, 24)
    chosen = _search(ask, BLUE, where='{"year": {">": 2000}}').json()
    assert [hit["id"] for hit in chosen["results"][0]["hits"]] == [0]
    assert "year" in chosen["notes"][0], "a field that is not declared is slow"
    for where in ("[1]", "{", '{"year": NaN}'):
        assert _search(ask, BLUE, where=where).status_code == 422
    refused = _search(ask, BLUE, colour="red")
    assert (refused.status_code, "no parameter 'colour'" in refused.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("content", "kind", "status", "message"),
    [
        (b"not a picture", "image/png", 422, "The picture is not"),
        (b"", "image/png", 422, "not a picture"),
        (encoded(Image.new("RGB", (1, 1))), "image/png", 422, "1 x 1 pixels"),
        (encoded(Image.new("1", (20_000, 10_000))), "image/png", 422, "40 megapixels"),
        (encoded(Image.new("RGB", (9, 9)), "ICO"), "image/x-icon", 415, "header Content-Type"),
        (encoded(Image.new("RGB", (9, 9)), "ICO"), "image/gif", 422, "it is of another kind"),
        (encoded(Image.new("RGB", (9, 9)), "GIF")[:20], "image/gif", 422, "not a picture"),
        (encoded(Image.new("1", (20_000, 10_000)), "GIF"), "image/gif", 422, "40 megapixels"),
        (BLUE, "application/json", 415, "has the type 'application/json'"),
        (b"../../etc/passwd", "image/jpeg", 422, "not a picture"),
    ],
    ids=[
        "text",
        "empty",
        "one pixel",
        "200 megapixels",
        "ICO",
        "ICO as GIF",
        "half a GIF",
        "large GIF",
        "JSON",
        "a path",
    ],
)
def test_what_is_no_picture_is_a_problem_with_a_reason(ask, content, kind, status, message):
    answer = _search(ask, content, kind)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert message in answer.json()["detail"]


def test_texts_find_texts_like_them(ask):
    body = {"texts": ["hot soup", "a fast car"], "k": 3}
    results = ask("POST", "/collections/texts/search", json=body).json()["results"]
    assert [[hit["label"] for hit in result["hits"]] for result in results] == [["food"] * 3, ["cars"] * 3]
    batch = ask("POST", "/collections/texts/search/batch", json={"searches": [body]}).json()["answers"]
    assert batch[0]["results"] == results


def test_texts_are_encoded_and_classified_as_their_vectors_are(ask, app):
    with app.state.service.searcher("texts").opened() as collection:
        vectors = collection.embed(["hot soup", "a fast car"]).tolist()
    for what in ("encode", "predict"):
        answers = [
            ask("POST", f"/collections/texts/{what}", json=body)
            for body in ({"texts": ["hot soup", "a fast car"]}, {"vectors": vectors})
        ]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
        for body in ({}, {"texts": ["soup"], "vectors": vectors}):
            refused = ask("POST", f"/collections/texts/{what}", json=body)
            assert (refused.status_code, "give either vectors, texts" in refused.json()["detail"]) == (
                422,
                True,
            )
    assert ask("POST", "/collections/pictures/encode", json={"texts": ["soup"]}).status_code == 422


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("pictures", {"texts": ["soup"]}, "so it takes no texts"),
        ("texts", {"texts": ["soup"], "items": [1]}, "give either vectors, items"),
        ("texts", {"texts": []}, "at least 1 item"),
        ("texts", {"texts": [3]}, "valid string"),
    ],
)
def test_searches_by_text_that_cannot_be_are_refused(ask, name, body, message):
    answer = ask("POST", f"/collections/{name}/search", json=body)
    assert (answer.status_code, message in answer.json()["detail"]) == (422, True)


def test_a_collection_of_texts_takes_no_pictures(ask):
    answer = ask("POST", "/collections/texts/search/picture", content=BLUE, headers={"Content-Type": "image/png"})
    assert (answer.status_code, "so it takes no pictures" in answer.json()["detail"]) == (422, True)


def _upload(ask, content):
    return ask("POST", "/explore/pictures/search", root="", files={"picture": ("mine.png", content)})


def test_an_uploaded_picture_has_an_address_that_shows_it_and_its_neighbors(ask):
    sent = _upload(ask, BLUE)
    assert sent.status_code == 303
    text = ask("GET", sent.headers["location"], root="").text
    assert "mine.png" in text
    assert "data:image/webp;base64," in text
    assert ">blue</span>" in text


def test_an_upload_has_the_limits_of_every_other_picture(ask):
    sent = _upload(ask, encoded(Image.new("1", (8_000, 6_000))))
    assert (sent.status_code, "40 megapixels" in sent.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("root", "path"), [("/api/v1", "/collections/pictures/items/3/preview"), ("", "/explore/pictures/pictures/3")]
)
def test_previews_are_pictures_that_cannot_run_anything(ask, root, path):
    answer = ask("GET", path, root=root)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert Image.open(io.BytesIO(answer.content)).size == (32, 24)
    assert ask("GET", "/collections/pictures/items/99/preview").status_code == 404
    missing = ask("GET", "/collections/texts/items/3/preview")
    assert (missing.status_code, "has no preview" in missing.json()["detail"]) == (404, True)


def test_a_collection_says_what_its_items_are(ask):
    infos = {name: ask("GET", f"/collections/{name}").json() for name in ("pictures", "texts")}
    assert [(info["kind"], info["title"]) for info in infos.values()] == [("pictures", None), ("texts", "text")]


def test_a_missing_library_is_a_problem_with_the_install_line(ask, monkeypatch):
    from starshl._common.extras import require

    monkeypatch.setattr(Text, "transform", lambda *_: require("no_such_library", extra="network"))
    monkeypatch.setattr(inputs, "open_picture", lambda *_, **__: require("no_such_library", extra="network"))
    for answer in (ask("POST", "/collections/texts/search", json={"texts": ["soup"]}), _search(ask, BLUE)):
        assert answer.status_code == 501
        assert "pip install 'starshl[network]'" in answer.json()["detail"]


def test_too_many_pictures_at_once_are_told_to_come_back(ask, monkeypatch):
    go_on, waiting = threading.Event(), []
    monkeypatch.setattr(Collection, "embed", lambda *_, **__: go_on.wait(60))
    searcher = ask.app.state.service.searcher("pictures")

    def send_one_after_the_other():
        for _ in range(1000):
            waiting.append(inputs.picture_vector(searcher, BLUE))

    try:
        with pytest.raises(BusyError):
            send_one_after_the_other()
        answer = _search(ask, BLUE)
    finally:
        go_on.set()
        wait(waiting)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_embedders_are_loaded_before_the_first_request(ask, monkeypatch):
    seen = []
    monkeypatch.setattr(Collection, "embed", lambda self, things: seen.append((self.kind, len(things))))
    ask.app.state.service.warm_up()
    assert seen == [("pictures", 1), ("texts", 1)]


def test_clients_search_by_picture_and_text(app, tmp_path, ask):
    (tmp_path / "blue.png").write_bytes(BLUE)

    async def ask_all():
        async with AsyncClient("http://localhost", transport=httpx.ASGITransport(app)) as client:
            pictures, texts = client.collection("pictures"), client.collection("texts")
            hits = await pictures.search_picture(tmp_path / "blue.png", k=2, labels=["red"], rescore=False)
            assert not await pictures.search_picture(BLUE, radius=0, where={"year": 1900})
            for kind in ("JPEG", "WEBP", "GIF", "BMP", "TIFF"):
                blue = encoded(Image.new("RGB", (40, 30), COLORS["blue"]), kind)
                assert (await pictures.search_picture(blue, k=1))[0].label == "blue"
            assert (await texts.predict(texts=["hot soup"])).labels == ["food"]
            assert len(await texts.encode(texts=["hot soup"])) == 1
            found = await texts.search(texts=["hot soup"], k=1)
            assert await texts.preview(0) is None
            with pytest.raises(ServiceProblem, match="not in the collection"):
                await texts.preview(999)
            return hits, found, await pictures.preview(0)

    hits, found, preview = asyncio.run(ask_all())
    assert ([hit.label for hit in hits], found[0].hits[0].label) == (["red", "red"], "food")
    assert Image.open(io.BytesIO(preview.content)).format == "WEBP"
    assert preview.media_type == "image/webp"


def test_the_blocking_client_sends_the_same_requests():
    seen = []

    def answer(request):
        seen.append((request.method, request.url.raw_path.decode(), request.headers.get("content-type")))
        if request.method == "GET":
            return httpx.Response(200, content=b"bytes", headers={"Content-Type": "image/webp"})
        return httpx.Response(200, json={"results": [{"hits": [], "total": 0}], "notes": []})

    with Client("http://localhost", transport=httpx.MockTransport(answer)) as client:
        pictures = client.collection("pictures")
        assert not pictures.search_picture(BLUE, k=3, explain=True, where={"year": 1})
        assert pictures.preview(7) == Preview(b"bytes", "image/webp")
        assert pictures.search(texts=["soup"])[0].hits == []
    root = "/api/v1/collections/pictures"
    assert seen == [
        ("POST", f"{root}/search/picture?k=3&explain=true&where=%7B%22year%22%3A+1%7D", "image/png"),
        ("GET", f"{root}/items/7/preview", None),
        ("POST", f"{root}/search", "application/json"),
    ]


def test_a_snapshot_carries_embedder_and_previews(ask):
    root = "/collections/pictures"
    before = ask("GET", f"{root}/items/3/preview").content
    assert ask("POST", f"{root}/snapshots", json={"name": "first"}).status_code == 201
    assert ask("DELETE", f"{root}/items/3").status_code == 200
    assert ask("POST", f"{root}/snapshots/first/restore").status_code == 200
    assert ask("GET", f"{root}/items/3/preview").content == before
    assert _search(ask, BLUE).status_code == 200


def test_a_text_without_a_known_word_gets_a_note_and_no_label(ask):
    def asked(what, texts, **more):
        response = ask("POST", f"/collections/texts/{what}", json={"texts": texts, **more})
        assert response.status_code == 200, response.text
        return response.json()

    sentence = "None of the words of the text 'zzzz qqqq' is known to this collection, so "
    assert asked("search", ["zzzz qqqq"], k=2)["notes"] == [f"{sentence}what is found there means nothing. {WORDS}"]
    assert asked("encode", ["zzzz qqqq"])["notes"] == [f"{sentence}the code there says nothing about it. {WORDS}"]
    alone = asked("predict", ["zzzz qqqq"])
    assert (alone["labels"], alone["notes"]) == ([None], [f"{sentence}the label there is null. {WORDS}"])


def test_a_text_of_a_megabyte_is_searched_for_and_stored_by_its_beginning(ask):
    long = "hot soup " * 120_000
    found = ask("POST", "/collections/texts/search", json={"texts": [long], "k": 3}).json()["results"][0]
    assert [hit["label"] for hit in found["hits"]] == ["food"] * 3
    written = ask("POST", "/collections/texts/items", json={"items": [{"text": long}, {"text": "warm soup"}]}).json()
    assert written["notes"] == ["1 text has more than 100,000 characters; it keeps the beginning."]
    (kept, short) = ask("POST", "/collections/texts/items/get", json={"ids": written["ids"]}).json()["items"]
    assert (kept["metadata"]["text"], short["metadata"]["text"]) == (long[:100_000], "warm soup")
    ask("POST", "/collections/texts/items/remove", json={"ids": written["ids"]})


def test_the_texts_of_a_batch_that_have_no_known_word_are_named_and_the_others_answered(ask):
    known = ask("POST", "/collections/texts/items/list", json={"limit": 2}).json()["items"]
    texts = [known[0]["metadata"]["text"], "zzzz", known[1]["metadata"]["text"], "yyyy", "qqqq"]
    root = "/collections/texts"
    expected = ask("POST", f"{root}/predict", json={"texts": [texts[0], texts[2]], "probabilities": True}).json()
    found = ask("POST", f"{root}/predict", json={"texts": texts, "probabilities": True}).json()
    assert expected["notes"] == []
    assert found["labels"] == [expected["labels"][0], None, expected["labels"][1], None, None]
    assert np.allclose(found["probabilities"][:3:2], expected["probabilities"])
    (note,) = found["notes"]
    assert "3 texts is known to this collection: texts[1] ('zzzz'), texts[3], texts[4]. So the label there" in note
    codes = ask("POST", f"{root}/encode", json={"texts": texts}).json()
    assert len(codes["codes"]) == 5
    (note,) = ask("POST", f"{root}/encode", json={"texts": texts[:2]}).json()["notes"]
    assert note.startswith("None of the words of texts[1] ('zzzz') is known to this collection, so the code there")
    refused = ask("POST", f"{root}/predict", json={"texts": ["hot soup", " "]})
    assert (refused.status_code, "rows 1, counted from 0" in refused.json()["detail"]) == (422, True)


def test_pages_of_a_collection_whose_function_is_not_at_hand_are_shown_and_ask_for_no_text(tmp_path):
    def describe(texts):
        return np.array([[len(text), text.count("o"), 1.0] for text in texts])

    texts = [f"hot soup number {number}" for number in range(12)]
    hasher = LSHash(16, random_state=0).fit(describe(texts))
    with Collection.create(tmp_path / "own", hasher, vectors="float16", embedder=describe, kind="texts") as own:
        own.add(own.embed(texts), metadata=[{"text": text} for text in texts])
    service = InProcess(create_app(lambda observer: Service([tmp_path / "own"], observer=observer)))
    try:
        page = service("GET", "/explore/own", root="")
        answer = service("POST", "/collections/own/search", json={"texts": ["soup"]})
    finally:
        service.close()
    assert page.status_code == 200
    assert (answer.status_code, "describe" in answer.json()["detail"]) == (422, True)


def test_rows_go_through_the_embedder_of_a_collection_of_rows(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 5))
    embedder = Embedder("rows", [Reduce(3)])
    hasher = LSHash(32, random_state=0).fit(embedder.fit_embed(rows))
    with Collection.create(tmp_path / "own", hasher, vectors="float16", embedder=embedder) as own:
        own.add(own.embed(rows))
    service = InProcess(create_app(lambda observer: Service([tmp_path / "own"], observer=observer)))
    try:
        root = "/collections/own"
        found = service("POST", f"{root}/search", json={"rows": rows[4:6].tolist(), "k": 1}).json()
        added = service("POST", f"{root}/items", json={"items": [{"row": (rows[0] + 1).tolist()}]})
        refused = service("POST", f"{root}/search", json={"rows": [[1, "a"]]})
        page = service("GET", "/explore/own", root="")
    finally:
        service.close()
    assert [result["hits"][0]["id"] for result in found["results"]] == [4, 5]
    assert added.status_code in (200, 201)
    assert (refused.status_code, "rows[0] holds more than numbers" in refused.json()["detail"]) == (422, True)
    assert page.status_code == 200
