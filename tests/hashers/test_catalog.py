import pytest

from starshl import NeighborGraph, load
from starshl.exceptions import BundleFormatError
from starshl.hashers import BaseHasher, configurations, get_class
from starshl.hashers.catalog import METHODS
from starshl.hashers.facts import LABEL_USES

CONFIGURATIONS = list(configurations())

every_method = pytest.mark.parametrize("name", METHODS)
every_configuration = pytest.mark.parametrize("method", CONFIGURATIONS, ids=lambda method: method.name)


@every_method
def test_every_name_leads_to_a_documented_hasher(name):
    hasher_class = get_class(name)
    assert issubclass(hasher_class, BaseHasher)
    assert hasher_class.__name__ == name
    assert hasher_class.__module__ == METHODS[name]
    assert "Examples" in hasher_class.__doc__


@every_configuration
def test_every_method_says_where_it_comes_from_and_what_it_costs(method):
    facts = method.facts
    assert ": " in facts.paper
    assert 1990 <= facts.year <= 2026
    assert all((facts.cost, facts.samples, facts.max_bits))
    assert facts.labels in LABEL_USES


@every_configuration
def test_a_hasher_knows_the_facts_of_its_own_setting(method):
    hasher = method.make(4, seed=7)
    assert (hasher.n_bits, hasher.get_params().get("random_state", 7)) == (4, 7)
    assert hasher.current_facts == method.facts
    assert hasher.__sklearn_tags__().target_tags.required == method.facts.needs_labels


@pytest.mark.parametrize("name", [*METHODS, "HybridHasher"])
def test_the_first_argument_of_every_hasher_is_its_number_of_bits(name):
    assert get_class(name)(12).n_bits == 12


def test_names_are_unique():
    names = [method.name for method in CONFIGURATIONS]
    assert len(set(names)) == len(names)


def test_unknown_method_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no method 'DeepHash'.*StarSHL.*KSH"):
        get_class("DeepHash")


def test_a_graph_file_is_no_hasher_and_load_says_so(tmp_path):
    NeighborGraph.of_rows([[0.0], [1.0], [5.0]], n_neighbors=1).save(tmp_path / "graph")
    with pytest.raises(BundleFormatError, match="a neighbor graph, not a"):
        load(tmp_path / "graph")


def test_a_misspelled_method_is_answered_by_the_nearest_names():
    with pytest.raises(ValueError, match="Did you mean HybridHasher"):
        get_class("hybridhasher")
