"""An exported page in a real browser without a network: run with `make test-slow`."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl import Collection, StarRidge
from starshl.data.features import Embedder, Text
from starshl.export import write_search_page
from starshl.hashers.baselines import LSHash

STROKE = [(0.38, 0.3), (0.52, 0.15), (0.52, 0.85)]  # a one, in parts of the sheet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="no npm to install onnxruntime-web"),
]


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def items(digits, tmp_path_factory):
    X, y = digits
    hasher = StarRidge(32, random_state=0).fit(X[:600], y[:600])
    with Collection.create(tmp_path_factory.mktemp("page") / "digits", hasher) as collection:
        collection.add(X, labels=y)
        yield collection


@contextmanager
def opened_page(chromium, collection, **settings):
    """The page of a collection, opened without a network; no script on it may fail."""
    path = collection.folder.with_suffix(".html")
    try:
        write_search_page(collection, path, **settings)
    except OSError as error:
        pytest.skip(f"no runtime: {error}")
    opened = chromium.new_context(offline=True).new_page()
    opened.set_default_timeout(120_000)
    problems = []
    opened.on("pageerror", lambda problem: problems.append(problem))
    opened.goto(path.as_uri())
    opened.wait_for_selector("html[data-ready]")
    yield opened
    assert problems == []


@pytest.fixture(scope="module")
def page(chromium, items):
    with opened_page(chromium, items, picture=(8, 8)) as opened:
        yield opened


@contextmanager
def awaiting_results(page):
    """Wait until what happens inside has given a new list of results."""
    before = page.get_attribute("#results", "data-query")
    yield
    page.wait_for_function(f"document.getElementById('results').dataset.query !== '{before}'")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    words = ["red", "blue", "Straße", "car", "bread", "fresh", "old", "日本", "house", "ΣΑΣ"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    text = Text(6).fit(texts)
    rows = text.transform(texts)
    embedder = Embedder("texts", [text])
    folder = tmp_path_factory.mktemp("texts") / "notes"
    with Collection.create(folder, LSHash(24, random_state=0).fit(rows), embedder=embedder) as collection:
        collection.add(rows, metadata=[{"text": each} for each in texts])
        yield collection


def test_a_typed_text_finds_what_the_collection_finds(chromium, texts):
    with opened_page(chromium, texts) as page:
        page.click("[data-mode=text]")
        for typed in ("A RED car!", "fresh bread, old strasse: Straße σας"):
            with awaiting_results(page):
                page.fill("#text", typed)
            row = texts.embedder.embed([typed])
            assert shown(page) == as_found(texts.search(row, k=24)[0])
        page.fill("#text", "unknown words")
        page.wait_for_function("document.getElementById('status').textContent.startsWith('No word of this text')")


def shown(page):
    entries = page.query_selector_all("#results li")
    return [(int(each.get_attribute("data-id")), float(each.get_attribute("data-distance"))) for each in entries]


def as_found(hits):
    """What a page shows of hits; runtimes compute in single precision."""
    return [(hit.id, pytest.approx(hit.distance, abs=1e-4)) for hit in hits]


def test_vectors_find_what_the_collection_finds(page, items, digits):
    X, _ = digits
    page.click("[data-mode=vector]")
    for row in (700, 1200, 1796):
        page.fill("#vector", ", ".join(map(str, X[row])))
        with awaiting_results(page):
            page.click("#encode")
        hits = items.search(X[row : row + 1].astype(np.float32), k=24)[0]
        assert shown(page) == as_found(hits)


def test_an_item_finds_what_the_collection_finds(page, items):
    page.click("[data-mode=item]")
    page.fill("#find", "Item 1500")
    page.click("#found button")
    assert shown(page) == as_found(items.search(items=[1500], k=24)[0])


def test_a_drawn_one_looks_like_a_one(page, items):
    page.click("[data-mode=draw]")
    box = page.locator("#drawing").bounding_box()
    # While one draws, the page asks every tenth of a second; with its clock stopped, only at the end of the stroke.
    page.evaluate("() => { performance.now = () => 0; }")
    points = [(box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in STROKE]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=8)
    with awaiting_results(page):
        page.mouse.up()
    page.evaluate("() => { delete performance.now; }")
    assert "Looks like 1" in page.inner_text("#query")
    labels = [item.label for item in items.get([item for item, _ in shown(page)])]
    assert labels.count(1) > 20


def test_numbers_that_do_not_fit_are_refused_in_words(page):
    page.click("[data-mode=vector]")
    page.fill("#vector", "1, 2, 3")
    page.click("#encode")
    assert page.inner_text("#status") == "These are 3 numbers; this model takes 64."
    page.fill("#vector", "1, two")
    page.click("#encode")
    assert "is not a number" in page.inner_text("#status")
