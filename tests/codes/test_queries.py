"""Queries as one value: selection, and what is refused."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes import EncodedQueries

CODES = BinaryCodes.from_signs([[1, 1, -1], [-1, 1, 1]])


def test_selection_takes_all_parts():
    queries = EncodedQueries(CODES, [[0.5, 0.5], [0.25, 0.75]], [[1.0], [2.0]])
    some = queries[np.array([1])]
    assert (len(queries), len(some), some.codes) == (2, 1, CODES[1])
    assert (some.posteriors.tolist(), some.vectors.tolist()) == ([[0.25, 0.75]], [[2.0]])


@pytest.mark.parametrize(
    ("posteriors", "part"),
    [
        ([[0.5, 0.5]], "one row per code"),
        ([0.5, 0.5], "one row per code"),
        ([[0.5], [0.5, 0.5]], "different lengths"),
        ([[np.nan, 1], [0, 1]], "NaN or infinity"),
        ([["a", "b"], ["c", "d"]], "must hold numbers"),
    ],
)
def test_parts_that_do_not_fit_the_codes_are_refused(posteriors, part):
    with pytest.raises(ValueError, match=part):
        EncodedQueries(CODES, posteriors)


def test_signs_are_not_codes():
    with pytest.raises(TypeError, match="codes is a ndarray"):
        EncodedQueries(CODES.to_signs())
