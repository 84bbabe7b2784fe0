"""Options and filters of a search are read once, into values that can be compared; every surface has all of them."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
from typer.main import get_command

from starshl import Collection
from starshl.cli.main import app
from starshl.collection import Filters, SearchOptions
from starshl.collection.options import FilterKeywords, SearchKeywords
from starshl.exceptions import InputError
from starshl.service.http.schemas import SearchRequest

OPTIONS = [name for name in SearchKeywords.__annotations__ if name not in FilterKeywords.__annotations__]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"labels": [1]}, {"labels": [True]}),
        ({"labels": [1]}, {"labels": ["1"]}),
        ({"where": {"a": 1}}, {"where": {"a": True}}),
        ({"where": {"a": 1}}, {"where": {"a": 1.0}}),
        ({"where": {"a": {"in": [1, 2]}}}, {"where": {"a": {"in": [1, 2.0]}}}),
        ({"among": [1, 2]}, {"among": [1]}),
        ({"among": []}, {}),
        ({"labels": []}, {}),
    ],
)
def test_filters_that_let_other_items_pass_differ(one, other):
    assert Filters.of(**one) != Filters.of(**other)
    assert SearchOptions.of(**one) != SearchOptions.of(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"labels": ["b", "a", "a"]}, {"labels": np.array(["a", "b"])}),
        ({"where": {"a": 1, "b": {"<": 2}}}, {"where": {"b": {"<": np.int64(2)}, "a": 1}}),
        ({"among": [3, 1, 3]}, {"among": np.array([1, 3], np.int32)}),
        ({"k": np.int64(3)}, {"k": 3}),
        ({"radius": np.float32(2.5)}, {"radius": 2.5}),
        ({"radius": 6.0}, {"radius": 6}),
        ({"min_probability": 1}, {"min_probability": 1.0}),
        ({"by_scores": np.True_}, {"by_scores": True}),
    ],
)
def test_options_that_mean_the_same_are_equal(one, other):
    assert SearchOptions.of(**one) == SearchOptions.of(**other)
    assert len({SearchOptions.of(**one), SearchOptions.of(**other)}) == 1


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"k": 0}, "k"),
        ({"k": None}, "k"),
        ({"radius": -1}, "radius"),
        ({"rescore": "no"}, "rescore"),
        ({"oversample": 0}, "oversample"),
        ({"metric": "hamming"}, "metric"),
        ({"min_probability": -0.1}, "min_probability"),
        ({"min_probability": 1.5}, "min_probability"),
        ({"min_probability": "likely"}, "min_probability"),
        ({"by_scores": 1}, "by_scores"),
        ({"explain": "yes"}, "explain"),
        ({"radius": 3, "rescore": True}, "rescore"),
        ({"radius": 3, "by_scores": True}, "by_scores"),
        ({"radius": 3, "metric": "cosine"}, "metric"),
        ({"k": None, "min_probability": 0.5, "rescore": True}, "rescore"),
        ({"rescore": False, "oversample": 5}, "oversample"),
    ],
)
def test_values_and_contradictions_are_refused_when_options_are_made(options, parameter):
    with pytest.raises(InputError) as caught:
        SearchOptions.of(**options)
    assert caught.value.parameter == parameter


def test_an_explanation_takes_the_metric_where_the_order_does_not():
    assert SearchOptions.of(radius=3, metric="cosine", explain=True).metric == "cosine"
    assert SearchOptions.of(rescore=False, metric="cosine", explain=True).metric == "cosine"


def test_an_unknown_option_is_refused_with_the_known_ones(folder, rows):
    with Collection(folder) as collection:
        with pytest.raises(TypeError, match="'shop' is not an option"):
            collection.search(rows[:1], shop="a")
        with pytest.raises(TypeError, match="'rescore' is not an option"):
            collection.search_radius(rows[:1], 3, rescore=True)


def test_every_option_is_a_field_and_documented_with_the_search():
    assert [each.name for each in fields(SearchOptions)] == ["k", *OPTIONS, "filters"]
    parameters = [*inspect.signature(Collection.search).parameters][1:]
    assert parameters == ["X", "k", "items", *SearchKeywords.__annotations__]
    for name in parameters:
        assert f"\n{name} : " in inspect.getdoc(Collection.search)


def test_every_surface_has_all_options():
    assert set(SearchKeywords.__annotations__) < set(SearchRequest.model_fields)
    command = get_command(app).commands["index"].commands["search"]
    singular = {"labels": "label", "guesses": "guess"}
    named = {singular.get(name, name) for name in SearchKeywords.__annotations__} - {"among"}
    assert named < {parameter.name for parameter in command.params}


def test_a_search_with_a_radius_shows_the_nearest_and_counts_all(folder, rows):
    with Collection(folder) as collection:
        (near,) = collection.search_radius(rows[:1], 24)
        (shown,) = collection.search(rows[:1], 5, radius=24)
    assert (len(near), near.total) == (60, 60)
    assert (shown.hits, shown.total) == (near[:5], 60)


def test_explanations_come_with_the_hits(folder, rows):
    with Collection(folder) as collection:
        found = collection.search(rows[:2], 3, explain=True)
        for row, each in zip(rows, found, strict=False):
            assert [hit.explanation for hit in each] == collection.explain(row[None], each)
        with pytest.raises(ValueError, match="keeps no vectors"):
            collection.search(items=[1], explain=True)
