"""Pages without a browser: what they say, that every search is an address, and who may change something."""

import re
import shutil
import threading
from urllib.parse import parse_qs

import numpy as np
import pytest
from starlette.datastructures import QueryParams

from starshl import Collection, StarRidge
from starshl._common.extras import require
from starshl.service.app import PARTS
from starshl.service.comparison import OtherMethods
from starshl.service.explorer.exports import EXPORTS, Export
from starshl.service.explorer.query_description import describe_query
from starshl.service.explorer.question import Question
from starshl.service.http.access import needed_right
from starshl.service.settings import READ

from .asking import PAGE, lesson, page, waited
from .drawn import BLUE


def test_the_first_page_names_the_collections_and_how_many_items_have_labels(ask):
    found = page(ask, "/")
    assert found.status_code == 200
    assert "things" in found.text
    assert "60 items" in found.text
    assert "60 labeled in 3 classes" in re.sub(r"\s+", " ", found.text)


def test_a_search_by_item_shows_its_neighbors_and_marks_right_and_wrong_ones(ask):
    text = page(ask, "/explore/things?item=0&k=9&methods=1").text
    hits = ask("POST", "/collections/things/search", json={"items": [0], "k": 10, "rescore": False}).json()
    shown = text[text.index('aria-label="Codes"') : text.index('aria-label="Codes, then vectors"')]
    expected = [hit for hit in hits["results"][0]["hits"] if hit["id"] != 0][:9]
    assert [int(item) for item in re.findall(r"data-search href=\"[^\"]*item=(\d+)", shown)] == [
        h["id"] for h in expected
    ]
    assert shown.count('class="hit right') == sum(hit["label"] == "a" for hit in expected)
    assert shown.count('class="hit wrong') == sum(hit["label"] != "a" for hit in expected)


def test_the_fast_part_of_a_page_leaves_the_other_methods_out(ask):
    text = page(ask, "/explore/things?item=0&part=neighbors").text
    assert 'aria-label="Most similar"' in text
    assert "How this was found" not in text
    assert "<html" not in text


def test_a_part_that_a_page_does_not_have_is_refused(ask):
    answer = ask("GET", "/explore/things?part=x", root="")
    assert answer.status_code == 422
    assert "no part" in answer.text


def test_an_export_without_its_library_is_a_problem_with_the_install_line(ask, monkeypatch):
    lacking = Export("Items", lambda *_: require("no_such_library", extra="parquet"))
    monkeypatch.setitem(EXPORTS, "items.parquet", lacking)
    answer = ask("GET", "/explore/things/export/items.parquet", root="")
    assert answer.status_code == 501
    assert "parquet" in answer.text


def test_exact_search_and_a_baseline_appear_beside_the_codes_once_they_are_prepared(ask, monkeypatch):
    go_on, prepare = threading.Event(), OtherMethods.prepare
    monkeypatch.setattr(OtherMethods, "prepare", lambda self, job: go_on.wait(60) and prepare(self, job))
    assert "being prepared" not in page(ask, "/explore/things?item=0").text
    assert "being prepared" in page(ask, "/explore/things?item=0&methods=1").text
    go_on.set()
    rest = "/explore/things?item=0&part=details&methods=1"
    text = waited(lambda: page(ask, rest).text, lambda text: "being prepared" not in text)
    assert 'aria-label="Vectors"' in text
    assert 'aria-label="ITQ"' in text
    assert "Why 0.png?" in page(ask, "/explore/things?item=3&hit=0").text


def test_filters_and_a_radius_narrow_what_is_found(ask):
    ask("PUT", "/collections/things/fields", json={"fields": {"price": "int"}})
    text = page(ask, "/explore/things?item=0&label=b&field.price.min=10&field.price.max=20&part=neighbors").text
    found = [int(item) for item in re.findall(r"data-search href=\"[^\"]*item=(\d+)", text)]
    assert sorted(found) == [10, 13, 16, 19]
    wide = page(ask, "/explore/things?item=0&within=1&radius=24&part=neighbors").text
    assert "59 items within 24 bits" in wide
    others = page(ask, "/explore/things?item=0&within=1&radius=24&label=b&part=neighbors").text
    assert "20 items within 24 bits" in others, "the item itself has another label, and is not one of them"
    same = page(ask, "/explore/things?item=0&within=1&radius=24&field.price.max=9&part=neighbors").text
    assert "9 items within 24 bits" in same


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/explore/nothing", 404, "There is no collection"),
        ("/explore/things?item=999", 404, "999"),
        ("/explore/things?item=many", 422, "must be a whole number"),
        ("/explore/things?k=1000", 422, "from 1 to 100"),
        ("/explore/things?upload=gone", 404, "Upload it again"),
        ("/explore/things?text=red", 422, "so it takes no texts"),
        ("/explore/things?item=0&field.size=3", 422, "no field"),
        ("/explore/things/export/all.zip", 404, "there are: "),
        ("/nowhere", 404, "nothing"),
    ],
)
def test_errors_are_pages_that_say_what_to_do(ask, path, status, words):
    found = page(ask, path)
    assert (found.status_code, found.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert words in found.text
    assert 'href="/"' in found.text
    assert ask("GET", path, root="").headers["content-type"] == "application/problem+json"


def test_what_items_say_about_themselves_is_shown_and_never_run(running, folder, rows):
    ask = running(folder)
    evil = "<script>alert(1)</script>"
    ask("PATCH", "/collections/things/items", json={"items": [{"id": 0, "metadata": {evil: evil}}]})
    ask("PUT", "/collections/things/labels", json={"items": [{"id": 0, "label": evil}]})
    for path in ("/", "/explore/things", "/explore/things?item=0", "/explore/things?item=3&hit=0", f"/explore/{evil}"):
        assert evil not in page(ask, path).text
    assert "&lt;script&gt;alert(1)" in page(ask, "/explore/things?item=0").text


def test_a_picture_for_a_collection_of_vectors_is_refused_with_a_reason(ask):
    sent = ask("POST", "/explore/things/search", root="", headers=PAGE, files={"picture": ("a.png", b"no picture")})
    assert sent.status_code == 422
    assert "so it takes no pictures" in sent.text


def test_a_text_never_names_a_file_of_the_service(running, raw_collections, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(BLUE)
    ask = running(shutil.copytree(raw_collections / "pictures", tmp_path / "pictures"))
    for text in (secret, tmp_path / "nothing.png"):
        refused = page(ask, f"/explore/pictures?text={text}")
        assert refused.status_code == 422
        assert "so it takes no texts" in refused.text


def test_a_question_survives_its_own_address():
    query = "item=-3&hit=5&k=20&within=1&radius=0&label=a&label=b%26c&methods=1&field.x.min=1&field.y=z+z"
    question = Question.of(QueryParams(query))
    assert Question.of(QueryParams(question.address().removeprefix("?"))) == question
    assert (
        parse_qs(question.address(item=None, hit=None, k=10, radius=None, labels=(), methods=False, fields=())[1:])
        == {}
    )


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("%2317&k=20", "item=17&k=20"),
        ("17", "item=17"),
        ("17.png", "item=17"),
        ("017", "name=017"),
        ("99", "name=99"),
        ("%2399", "item=99"),
        ("7.PNG", "name=7.PNG"),
        ("50%25", "name=50%25"),
        ("1_.png", "name=1_.png"),
        ("red+shoes&label=a", "name=red+shoes&label=a"),
        ("", ""),
    ],
)
def test_the_search_box_takes_numbers_and_parts_of_file_names(ask, typed, query):
    assert page(ask, f"/explore/things?q={typed}").headers["location"] == f"/explore/things?{query}"


def test_part_of_a_file_name_lists_the_files_that_have_it_with_all_filters(ask):
    text = page(ask, "/explore/things?name=7.PNG").text
    assert re.findall(r'data-view="/explore/things/items/(\d+)"', text) == ["7", "17", "27", "37", "47", "57"]
    labeled = page(ask, "/explore/things?name=7.png&label=a").text
    assert re.findall(r'data-view="/explore/things/items/(\d+)"', labeled) == ["27", "57"]
    assert "No file has" in page(ask, "/explore/things?name=7_png").text, "a joker of SQL is a letter like others"


def test_words_that_no_file_has_say_what_can_be_searched_for(running, raw_collections, tmp_path):
    ask = running(*(shutil.copytree(raw_collections / kind, tmp_path / kind) for kind in ("pictures", "texts")))
    text = page(ask, "/explore/pictures?name=red+apple").text
    assert "No file has “red apple”" in text
    assert "search with a picture" in text
    answer = page(ask, "/explore/texts?q=soup")
    assert answer.headers["location"] == "/explore/texts?text=soup", "words are searched for in texts"
    assert page(ask, "/explore/pictures?q=blue").headers["location"] == "/explore/pictures?name=blue"


def test_scripts_and_styles_are_cached_forever_under_an_address_of_their_contents(ask):
    styles = re.search(r'href="(/static/\w+/style\.css)"', page(ask, "/").text).group(1)
    found = ask("GET", styles, root="")
    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-type"].startswith("text/css")
    assert ask("GET", "/static/older/style.css", root="").headers["cache-control"] == "no-store"
    assert page(ask, "/").headers["cache-control"] == "no-store"


def test_pages_run_no_script_but_files_of_the_service(ask):
    for path in (
        "/",
        "/explore/things?item=0",
        "/explore/things/teach",
        "/explore/things/map",
        "/explore/things/model",
    ):
        found = page(ask, path)
        assert "default-src 'self'" in found.headers["content-security-policy"]
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=", found.text)


def changing_routes():
    routes = [route for part in PARTS for route in part.routes if not route.path.startswith(("/api/", "/log"))]
    return [route.path for route in routes if "POST" in route.methods]


def test_every_change_from_a_page_of_another_site_is_refused(ask):
    paths = changing_routes()
    assert len(paths) >= 4
    for path in paths:
        address = path.replace("{name}", "things")
        sent = ask("POST", address, root="", json={}, headers={"Origin": "https://evil.example"})
        assert sent.status_code == 403, path
        sent = ask("POST", address, root="", json={}, headers={"Sec-Fetch-Site": "cross-site"})
        assert sent.status_code == 403, path


def test_only_what_changes_no_item_needs_no_right_to_write():
    needs = {path: needed_right("POST", path.replace("{name}", "x")) for path in changing_routes()}
    assert [path for path, right in needs.items() if right == READ] == [
        "/explore/{name}/search",
        "/explore/{name}/selections",
    ]


def test_the_map_places_every_item_once_it_is_prepared(ask):
    assert ask("GET", "/explore/things/map/items", root="").status_code == 409
    waited(lambda: page(ask, "/explore/things/map").text, lambda text: "<canvas" in text)
    found = ask("GET", "/explore/things/map/items", root="").json()
    assert found["ids"] == [str(item) for item in range(60)]
    assert all(0 <= place <= 10_000 for place in found["x"] + found["y"])
    assert [found["labels"][number] for number in found["label"][:3]] == ["a", "b", "c"]
    assert found["given"] == [1] * 60
    assert len(set(zip(found["x"], found["y"], strict=True))) > 30
    cards = ask("GET", "/explore/things/cards?ids=3,5", root="").text
    assert re.findall(r"item=(\d+)", cards) == ["3", "5"]
    assert ask("GET", "/explore/things/cards?ids=3,x", root="").status_code == 422


def test_a_query_is_described_where_only_some_rows_had_labels_that_are_words(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5)) + np.repeat([[0.0], [4.0]], 30, axis=0)
    some = [name if place % 3 else None for place, name in enumerate(["low"] * 30 + ["high"] * 30)]
    hasher = StarRidge(8, random_state=0).fit(X, np.array(some, dtype=object))
    with Collection.create(tmp_path / "words", hasher) as collection:
        guesses = describe_query(collection, X[0]).predictions
    assert guesses[0].label == "low"
    assert guesses[0].probability > 0.5


def test_exact_search_finds_what_a_sort_of_all_distances_finds(folder, rows):
    from starshl.service import Searcher
    from starshl.service.comparison import OtherMethods
    from starshl.service.jobs import RunningJob

    searcher = Searcher(folder)
    other_ways = OtherMethods(searcher)
    assert not other_ways.is_ready
    other_ways.prepare(RunningJob("compare", "things"))
    exact, _ = other_ways.search(rows[7], 5)
    assert exact.ids == sorted(range(60), key=lambda item: ((rows[item] - rows[7]) ** 2).sum())[:5]
    some, itq = other_ways.search(rows[7], 5, among=np.arange(20, 40))
    assert {*some.ids, *itq.ids} <= set(range(20, 40))
    searcher.writer.remove([7]).result()
    assert not other_ways.is_ready
    searcher.close()
    assert len(Collection(folder, read_only=True)) == 59


def test_all_labels_can_be_taken_away_as_a_table(ask):
    assert ask("GET", "/explore/things/export/items.parquet", root="").status_code == 409, (
        "places on a map need a lesson"
    )
    lesson(ask)
    lines = ask("GET", "/explore/things/export/labels.csv", root="").text.splitlines()
    assert len(lines) == 61
    assert lines[0].split(",")[0] == "id"
    assert "a" in lines[1].split(",")


def test_the_model_and_the_whole_collection_can_be_taken_away(ask, tmp_path):
    from starshl import load
    from starshl.service.snapshots import read_archive

    model = ask("GET", "/explore/things/export/model.star", root="")
    assert model.headers["content-disposition"] == 'attachment; filename="things-model.star"'
    (tmp_path / "m.star").write_bytes(model.content)
    assert load(tmp_path / "m.star").n_bits_ == 24
    (tmp_path / "c.tar").write_bytes(ask("GET", "/explore/things/export/collection.tar", root="").content)
    with (tmp_path / "c.tar").open("rb") as file:
        assert "items.sqlite" in [name for name, content in read_archive(file) if content.read() is not None]
