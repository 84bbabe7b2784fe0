"""The page about the model: what its fit chose, and what was measured, in honest words."""

import re

import numpy as np
import pytest

from starshl import Collection, StarRidge, make_index
from starshl.service.explorer.query_description import describe_query

from .asking import change, current_codes, lesson, page, waited


def measured(ask):
    """What the page of the model shows once the search was measured: its text, and a figure per method."""
    ask("POST", "/explore/things/model/quality", root="")
    part = "/explore/things/model?part=quality"
    text = waited(lambda: ask("GET", part, root="").text, lambda text: "data-poll" not in text)
    return re.sub(r"\s+", " ", text), {
        method: float(number) for method, number in re.findall(r"<td>([^<]+)</td><td[^>]*>([\d.]+)", text)
    }


def test_the_page_of_the_model_tells_what_was_fitted_and_measures_the_search(ask):
    assert "LSHash" in page(ask, "/explore/things/model").text
    text, figures = measured(ask)
    assert set(figures) == {"Codes", "Codes, then vectors", "Vectors", "ITQ", "by chance"}
    assert figures["by chance"] == pytest.approx(19 / 59, abs=1e-3), "a query is not among its own answers"
    assert "Too few labels" not in text
    assert "The 60 queries are items with a given label" in text
    assert "among all 60 items with a given label" in text
    assert "follow from their vectors, not from their labels" in text


def test_few_labels_are_said_to_be_too_few_and_chance_leaves_the_query_out(ask):
    sizes = {"ship": 3, "deer": 2, "bird": 1, "dog": 2, "airplane": 1, "frog": 2, "truck": 1, "automobile": 2}
    names = [name for name, size in sizes.items() for _ in range(size)]
    labels = [{"id": item, "label": names[item] if item < 14 else None} for item in range(60)]
    ask("PUT", "/collections/things/labels", json={"items": labels})
    text, figures = measured(ask)
    assert figures["by chance"] == pytest.approx(14 / (14 * 13), abs=1e-3)
    assert figures["at best"] == pytest.approx(14 / (14 * 10), abs=1e-3)
    assert "Too few labels for figures that mean something" in text
    assert "Only 14 items have a given label, and 14 of 14 queries are of a class with fewer than 10 others" in text


def test_codes_that_follow_from_labels_are_measured_without_that_too(running, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 6)), np.repeat(["a", "b", "c"], 30)
    hasher = StarRidge(12, random_state=0).fit(X, y)
    with Collection.create(tmp_path / "things", hasher, vectors="float16") as collection:
        collection.add(X[:80], labels=y[:80])
        collection.add(X[80:])
        rows, index = collection.vectors(range(80)), {}
        items = make_index(hasher.encode_database(rows), hasher=hasher)
        found = items.search(hasher.encode_queries(rows), 11).ids
        by_class = []
        predicted = hasher.predict(rows)
        for query in range(80):
            order = [item for item in found[query].tolist() if item != query][:10]
            index[query] = np.mean(y[order] == y[query])
            of_class = [item for item in np.flatnonzero(y[:80] == predicted[query]) if item != query]
            by_class.append(np.mean(y[of_class[:10]] == y[query]))  # all of them have the same label, near or far
    text, figures = measured(running(tmp_path / "things"))
    assert figures["Class, then vectors"] == pytest.approx(np.mean(by_class), abs=1e-3)
    assert figures["Codes of vectors alone"] == pytest.approx(np.mean(list(index.values())), abs=1e-3)
    assert "All of these items are stored under codes that follow from their given labels" in text
    assert "10 items without a given label were left out" in text


def test_the_page_of_the_model_tells_given_labels_from_predicted_ones(ask):
    lesson(ask)
    ask("PUT", "/collections/things/labels", json={"items": [{"id": item, "label": None} for item in range(9, 60)]})
    change(ask, "answer", [9], "a")
    current_codes(ask)
    text = page(ask, "/explore/things/model").text
    assert "60, of which 10 had a label" in text
    assert "too few labels to say how many others are right" in text
    assert "accuracy" not in text


def test_pages_show_classes_under_the_names_that_they_have_now(tmp_path, running):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.standard_normal((60, 6)) + 4 * np.eye(6)[np.repeat([0, 1, 2], 20)]
    with Collection.create(tmp_path / "things", StarRidge(12, random_state=0).fit(X, y), vectors="float16") as things:
        things.add(X, labels=y)
        things.rename_class("a", "first")
        things.remove_class("c")
        guesses = describe_query(things, X[0]).predictions
    assert guesses[0].label == "first"
    assert {each.label for each in guesses} <= {"first", "b"}
    text = page(running(tmp_path / "things"), "/explore/things/model").text
    assert "Codeword of first" in text
    assert "Codeword of a" not in text
    assert "Codeword of c" not in text
