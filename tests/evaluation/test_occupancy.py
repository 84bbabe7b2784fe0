"""Bucket statistics against plain counting."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import entropy

from starshl import BinaryCodes
from starshl.evaluation import occupancy


def test_occupancy_counts_what_a_counter_of_rows_counts():
    signs = np.random.default_rng(0).choice([-1, 1], (200, 5))
    signs[:, 2] = 1
    found = occupancy(BinaryCodes.from_signs(signs))
    filling = np.array(list(Counter(map(tuple, signs.tolist())).values()))
    assert (found.n_codes, found.n_distinct, found.largest) == (200, len(filling), filling.max())
    assert found.code_entropy == pytest.approx(entropy(filling, base=2))
    of_bits = [entropy(np.bincount(signs[:, b] > 0, minlength=2), base=2) for b in range(5)]
    assert found.mean_bit_entropy == pytest.approx(np.mean(of_bits))
    same = (signs[:, None] == signs[None]).all(axis=2)
    assert found.mean_bucket_of_a_code == pytest.approx(same.sum(axis=1).mean())
    assert found.n_constant_bits == 1


def test_equal_codes_have_no_entropy_and_distinct_ones_have_all():
    equal = occupancy(BinaryCodes.from_signs(np.ones((6, 3))))
    assert (equal.code_entropy, equal.mean_bit_entropy, equal.n_constant_bits) == (0.0, 0.0, 3)
    every = 2 * ((np.arange(8)[:, None] >> np.arange(3)) & 1) - 1
    distinct = occupancy(BinaryCodes.from_signs(every))
    assert (distinct.code_entropy, distinct.mean_bit_entropy) == (3.0, 1.0)


def test_no_codes_have_no_buckets():
    with pytest.raises(ValueError, match="holds no codes"):
        occupancy(BinaryCodes.from_signs(np.ones((3, 4)))[:0])
