"""ScoreRule: distances up to a limit, and what doubt about the class costs."""

import numpy as np
import pytest

from starshl.codes.score_rule import ScoreRule


def test_score_adds_the_saturated_distance_and_the_cost_of_doubt():
    rule = ScoreRule(class_weight=2, unit=3, saturation=10)
    assert rule.saturated([0, 10, 30]).tolist() == [0, 10, 11]
    assert np.allclose(rule.class_costs([1, np.exp(-1), np.exp(-2)]), [0, 6, 12])
    assert rule.scores([30], [np.exp(-1)]) == pytest.approx(17)


def test_probabilities_that_rounding_moved_out_of_range_cost_what_the_bounds_cost():
    rule = ScoreRule(1, 1, 5)
    assert rule.class_costs([1 + 1e-7, 0, -1e-9]).tolist() == [0, *[pytest.approx(6 * np.log(10))] * 2]


def test_without_a_weight_the_order_is_that_of_distances():
    distances, probabilities = np.arange(50), np.random.default_rng(0).random(50)
    assert (np.diff(ScoreRule(0, 4, 20).scores(distances, probabilities)) > 0).all()


@pytest.mark.parametrize("name", ["class_weight", "unit", "saturation"])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf, "1"])
def test_numbers_that_are_no_rule_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        ScoreRule(**({"class_weight": 1, "unit": 1, "saturation": 1} | {name: value}))
