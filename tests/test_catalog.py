import pytest

from starshl.base import BaseHasher
from starshl.catalog import METHODS, SUPERVISION, configurations, get_class
from starshl.supervision import METHODS_WITHOUT_LABELS

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
every_variant = pytest.mark.parametrize(
    ("method", "variant"), list(configurations()), ids=[variant.name for _, variant in configurations()]
)


@every_method
def test_every_line_leads_to_a_documented_hasher(method):
    hasher_class = get_class(method.name)
    assert issubclass(hasher_class, BaseHasher)
    assert hasher_class.__name__ == method.name
    assert hasher_class.__module__ == method.module
    assert "Examples" in hasher_class.__doc__


@every_method
def test_every_line_says_where_it_comes_from_and_what_it_costs(method):
    assert ": " in method.paper
    assert 1990 <= method.year <= 2026
    assert all((method.cost, method.needs, method.max_bits))


@every_variant
def test_supervision_is_a_known_word_that_agrees_with_the_hasher(method, variant):
    assert variant.supervision in SUPERVISION
    hasher = get_class(method.name)(n_bits=4, **variant.params)
    required = hasher.__sklearn_tags__().target_tags.required
    assert required == (variant.supervision in ("labels", "partial labels"))


def test_names_are_unique():
    names = [variant.name for _, variant in configurations()]
    assert len(set(names)) == len(names)


def test_error_messages_name_every_method_that_does_without_labels():
    without = {method.name for method in METHODS if method.supervision in ("none", "optional labels")}
    assert set(METHODS_WITHOUT_LABELS) == without
    assert list(METHODS_WITHOUT_LABELS) == sorted(METHODS_WITHOUT_LABELS)


def test_unknown_method_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no method 'DeepHash'; known are StarSHL, .*KSH"):
        get_class("DeepHash")
