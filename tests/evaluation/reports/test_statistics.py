"""Means, deviations and paired intervals."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from starshl.evaluation.reports.statistics import means_of, paired, require_paired, summarize


def test_a_paired_interval_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(3)
    first, second = rng.random(5), rng.random(5)
    expected = ttest_rel(first, second).confidence_interval(0.95)
    found = paired(dict(enumerate(first)), dict(enumerate(second)))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.n_won == int((first > second).sum())


def test_only_shared_runs_are_compared():
    found = paired({0: 0.9, 1: 0.8, 5: 0.1}, {1: 0.7, 0: 0.7, 7: 0.9})
    assert found.n == 2
    assert found.difference == pytest.approx(0.15)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_a_single_run_has_no_deviation_and_no_interval():
    assert summarize([0.5]).deviation is None
    found = paired({0: 0.9}, {0: 0.8})
    assert (found.low, found.clear) == (None, False)


def test_nan_counts_as_absent():
    assert summarize([math.nan]) is None
    assert summarize([math.nan, 0.5]).n == 1


def test_means_leave_out_names_without_a_value():
    assert means_of({"LSH": {0: 0.25, 1: 0.75}, "BRE": {0: math.nan}, "KSH": {}}) == {"LSH": 0.5}


def test_methods_without_a_shared_run_cannot_be_required_to_compare():
    with pytest.raises(ValueError, match="share no run"):
        require_paired({0: 1.0}, {1: 1.0})
