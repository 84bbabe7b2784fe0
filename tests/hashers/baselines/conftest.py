"""Retrieval on digits, which several files of this folder measure."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from starshl.evaluation import mean_average_precision, precision_at


@pytest.fixture(scope="session")
def unit_digits():
    """1,000 training rows of unit length, which are the database, and 797 queries."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = normalize(X[order]), y[order]
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.fixture(scope="session")
def retrieval():
    """A function that fits a hasher on a split and returns its P@10 and mAP."""

    def measure(hasher, split):
        X, y, queries, y_queries = split
        hasher.fit(X, y)
        codes = hasher.encode(queries), hasher.encode(X), y_queries, y
        return precision_at(*codes), mean_average_precision(*codes)

    return measure
