"""The weight of another class is the one that searches by hand choose."""

import numpy as np
import pytest

from starshl.hashers.hybrid_tuning import TuningSearches, choose_weight
from starshl.index.hybrid import FloatRule, HammingRule

WEIGHTS = [0.0, 1.0, 2.0, 4.0, 8.0]


def searches(seed, *, labels=True):
    """Forty queries among 130 items whose distances say a little about their classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=130)
    queries = rng.permutation(130)[:40]
    same = classes[queries][:, None] == classes
    distances = rng.integers(0, 12, size=(40, 130)) + np.where(same, 0.0, rng.integers(0, 5, size=(40, 130)))
    guesses = np.where(rng.random(40) < 0.8, classes[queries], rng.integers(3, size=40))
    itself = queries[:, None] == np.arange(130)
    vector_distances = np.where(itself, np.inf, distances + rng.random((40, 130)) * 4)
    nearest = np.argsort(vector_distances, axis=1)[:, :10]
    distances[itself] = np.inf
    return TuningSearches(distances, guesses[:, None] != classes, nearest, same if labels else None)


def first_by_hand(found, rule, n):
    firsts = []
    for distances, differs in zip(found.distances, found.differs, strict=True):
        of_class = np.sort(distances[~differs & np.isfinite(distances)])
        end = of_class[: rule.class_first][-1] if rule.class_first and len(of_class) else -1.0
        keys = []
        for position, distance in enumerate(distances.tolist()):
            if np.isfinite(distance):
                pushed = rule.pushed(np.array([distance]), np.array([end]))[0] if differs[position] else distance
                keys.append((pushed, position))
        firsts.append([position for _, position in sorted(keys)[:n]])
    return firsts


@pytest.mark.parametrize("rule_type", [HammingRule, FloatRule])
@pytest.mark.parametrize("class_first", [0, 3, 1000])
def test_first_items_are_those_of_a_sort(rule_type, class_first):
    found = searches(0)
    for weight in WEIGHTS:
        rule = rule_type(1, weight, class_first)
        ours = found.first(rule, found.thresholds(class_first), 12)
        assert [sorted(row) for row in ours.tolist()] == [sorted(row) for row in first_by_hand(found, rule, 12)]


def test_weight_is_the_largest_that_costs_no_recall_if_the_class_comes_first():
    for seed in range(4):
        found = searches(seed)
        recalls = []
        for weight in WEIGHTS:
            firsts = first_by_hand(found, HammingRule(1, weight, 10), 10)
            recalls.append(
                np.mean([np.isin(near, row).mean() for near, row in zip(found.nearest, firsts, strict=True)])
            )
        expected = WEIGHTS[np.flatnonzero(np.array(recalls) >= max(recalls) - 0.001)[-1]]
        assert choose_weight(found, lambda weight: HammingRule(1, weight, 10), WEIGHTS) == expected


def test_weight_is_the_smallest_of_nearly_best_precision_otherwise():
    for seed in range(4):
        found = searches(seed)
        precisions = []
        for weight in WEIGHTS:
            firsts = first_by_hand(found, HammingRule(1, weight, 0), 10)
            precisions.append(np.mean([same[row].mean() for same, row in zip(found.relevant, firsts, strict=True)]))
        expected = WEIGHTS[np.flatnonzero(np.array(precisions) >= max(precisions) - 0.003)[0]]
        assert choose_weight(found, lambda weight: HammingRule(1, weight, 0), WEIGHTS) == expected
        assert expected > 0


def test_no_labels_are_needed():
    assert choose_weight(searches(0, labels=False), lambda weight: HammingRule(1, weight, 0), WEIGHTS) in WEIGHTS


def test_query_alone_in_its_class_finds_others():
    alone = TuningSearches(np.array([[np.inf, 3.0, 1.0]]), np.array([[False, True, True]]), np.array([[1, 2]]), None)
    assert alone.thresholds(10).tolist() == [[-1.0]]
    assert sorted(alone.first(HammingRule(1, 2, 10), alone.thresholds(10), 2)[0].tolist()) == [1, 2]
