"""Errors and warnings with fields arrive whole wherever they are copied or sent."""

import copy
import pickle

import pytest

from starshl.exceptions import InputError, InputWarning

FIELDS = {"parameter": "n_bits", "value": 1500, "low": 2000}


@pytest.mark.parametrize("kind", [InputError, InputWarning])
@pytest.mark.parametrize(
    "through",
    [copy.copy, lambda error: pickle.loads(pickle.dumps(error)), lambda error: type(error)(*error.args)],
    ids=["copy", "pickle", "arguments"],
)
def test_a_copy_has_the_fields_and_the_words(kind, through):
    error = kind("{parameter} is {value:,}", "it must be at least {low:,}", "Ask for more.", **FIELDS)
    copied = through(error)
    assert type(copied) is kind
    assert copied.fields == FIELDS
    assert str(copied) == "n_bits is 1,500; it must be at least 2,000. Ask for more."
    assert copied.worded({"n_bits": "--bits"}).startswith("--bits is 1,500")
