"""Queries as one value: selection, merged classes, and what is refused."""

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


def test_merged_classes_are_one_class_and_removed_ones_none():
    queries = EncodedQueries(CODES, [[0.5, 0.25, 0.125, 0.125], [0, 1, 0, 0]])
    pooled = queries.pooled(np.array([0, 1, 0, -1]))
    assert pooled.posteriors.tolist() == [[0.625, 0.25, 0.625, 0], [0, 1, 0, 0]]
    items = np.random.default_rng(0).dirichlet(np.ones(4), 5)
    # P(same) of merged classes is the sum over their pairs.
    by_hand = [
        sum(p[g] * h[c] for g in (0, 2) for c in (0, 2)) + p[1] * h[1] for p in queries.posteriors for h in items
    ]
    np.testing.assert_allclose((pooled.posteriors @ items.T).ravel(), by_hand, atol=1e-6)


def test_merged_posteriors_are_the_same_for_any_batch():
    posteriors = np.random.default_rng(0).dirichlet(np.ones(12), 200).astype(np.float32)
    queries = EncodedQueries(BinaryCodes.from_signs(np.ones((200, 3))), posteriors)
    groups = np.array([0] * 7 + [7, 7, 7, 10, -1])
    together, alone = queries.pooled(groups), [queries[row : row + 1].pooled(groups) for row in range(200)]
    np.testing.assert_array_equal(together.posteriors, np.concatenate([each.posteriors for each in alone]))


def test_codes_alone_have_nothing_to_merge():
    queries = EncodedQueries(CODES)
    assert queries.pooled(np.array([0, 0])) is queries


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
