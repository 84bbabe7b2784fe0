"""Whole lists are measured in expectation over ties, and probabilities against what came true."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from starshl.evaluation.whole_lists import list_quality, reliability


def by_all_orders(distances, same):
    """Precision at 10 and average precision of one list, as means over all orders of items at equal distance."""
    kept = []
    for order in permutations(range(len(distances))):
        if all(distances[a] <= distances[b] for a, b in pairwise(order)):
            right = same[list(order)]
            ranks = np.flatnonzero(right) + 1
            kept.append((right[:10].mean(), np.mean(np.arange(1, len(ranks) + 1) / ranks)))
    return np.mean(kept, axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_ties_count_as_the_mean_over_their_orders(seed):
    rng = np.random.default_rng(seed)
    distances, same = rng.integers(0, 3, 7).astype(float), rng.random(7) < 0.5
    same[0] = True
    found = list_quality(distances[None], same[None])
    precision, average = by_all_orders(distances, same)
    assert found.precision_at_10 == pytest.approx(precision)
    assert found.mean_average_precision == pytest.approx(average)
    assert found.pooled_area == pytest.approx(average)


def test_without_ties_the_area_is_that_of_the_pairs_of_all_queries():
    rng = np.random.default_rng(0)
    distances, same = rng.random((20, 50)), rng.random((20, 50)) < 0.3
    found = list_quality(distances, same)
    assert found.pooled_area == pytest.approx(average_precision_score(same.ravel(), -distances.ravel()))
    means = [average_precision_score(right, -row) for row, right in zip(distances, same, strict=True)]
    assert found.mean_average_precision == pytest.approx(np.mean(means))


def test_an_order_that_has_another_scale_for_each_query_loses_area_only():
    rng = np.random.default_rng(1)
    distances, same = rng.random((20, 50)), rng.random((20, 50)) < 0.3
    distances[same] -= 0.4
    scaled = distances * 10.0 ** rng.integers(-3, 3, (20, 1)) + rng.normal(size=(20, 1))
    before, after = list_quality(distances, same), list_quality(scaled, same)
    assert before[:2] == after[:2]
    assert after.pooled_area < before.pooled_area


def test_a_query_without_a_relevant_item_has_no_average_precision():
    distances = np.arange(4.0)[None].repeat(2, axis=0)
    same = np.array([[True, False, False, False], [False] * 4])
    assert list_quality(distances, same).mean_average_precision == 1.0
    assert np.isnan(list_quality(distances[1:], same[1:]).mean_average_precision)


def test_probabilities_that_come_true_as_often_as_said_are_reliable():
    said = np.repeat([0.1, 0.5, 0.9], 1000)
    so = np.concatenate([np.arange(1000) < 1000 * share for share in (0.1, 0.5, 0.9)])
    found = reliability(said, so)
    assert found.said == pytest.approx([0.1, 0.5, 0.9])
    assert found.so == pytest.approx([0.1, 0.5, 0.9])
    assert found.n_pairs == [1000] * 3
    assert found.calibration_error == pytest.approx(0, abs=1e-9)
    entropies = [-share * np.log(share) - (1 - share) * np.log(1 - share) for share in (0.1, 0.5, 0.9)]
    assert found.log_loss == pytest.approx(np.mean(entropies))
    sure = reliability(np.where(so, 1.0, 0.9), so)
    assert sure.calibration_error == pytest.approx(0.9 * np.mean(~so))
    assert np.isfinite(reliability(np.zeros(3), np.ones(3, bool)).log_loss)
