"""The weight of another class is the smallest one that is nearly as precise as the best."""

import numpy as np

from starshl import BinaryCodes
from starshl.hybrid.weight import choose_weight


def precisions_by_hand(codes, item_classes, queries, query_classes, labels, weights):
    distances = codes.distances(codes)
    found = []
    for weight in weights:
        right = []
        for query, query_class in zip(queries, query_classes, strict=True):
            total = distances[query] + weight * (item_classes != query_class)
            order = [item for item in np.lexsort((np.arange(len(codes)), total)) if item != query][:10]
            right.append(np.mean(labels[order] == labels[query]))
        found.append(np.mean(right))
    return np.array(found)


def test_weight_is_the_one_that_searches_by_hand_choose():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = rng.integers(3, size=130)
        signs = np.where(rng.random((130, 10)) < 0.35, -1, 1) * np.where(labels[:, None] > np.arange(10) % 3, 1, -1)
        codes, queries = BinaryCodes.from_signs(signs), rng.permutation(130)[:70]
        predicted = np.where(rng.random(70) < 0.8, labels[queries], rng.integers(3, size=70))
        expected = precisions_by_hand(codes, labels, queries, predicted, labels, range(12))
        chosen = choose_weight(codes, labels, queries, predicted, labels)
        assert chosen == np.flatnonzero(expected >= expected.max() - 0.003)[0]
        assert chosen > 0


def test_weight_is_zero_where_the_class_says_nothing():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    codes = BinaryCodes.from_signs(np.where(labels[:, None] == 1, 1, -1) * np.ones((60, 8)))
    predicted = rng.integers(2, size=60)
    assert choose_weight(codes, rng.integers(2, size=60), np.arange(60), predicted, labels) == 0


def test_fewer_than_ten_others_are_enough():
    codes = BinaryCodes.from_signs(np.ones((3, 4)))
    labels = np.array([0, 0, 1])
    assert choose_weight(codes, labels, np.arange(3), labels, labels) == 0
