"""Your own hashing method: declare facts, write fit, and check the contract that all methods here obey."""

from typing import Self

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from starshl.evaluation import precision_at
from starshl.hashers import (
    Facts,
    LabelsLike,
    LinearHasher,
    SamplesLike,
    Seed,
    all_or_nothing,
    check_integer,
    check_rows,
)
from starshl.testing import check_hasher


class RandomPairs(LinearHasher):
    """Bit b tells which of two random rows of the training set a row is more like, by inner product."""

    facts = Facts(paper="none: an example", year=2026, labels="ignored", cost="bits x features")

    def __init__(self, n_bits: int = 32, *, n_jobs: int | None = None, random_state: Seed = None):
        self.n_bits = n_bits
        self.n_jobs = n_jobs  # threads of encode, which LinearHasher provides
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True)
        draw = check_random_state(self.random_state).randint(len(X), size=(2, n_bits))
        first, second = X[draw[0]], X[draw[1]]
        self.components_ = first - second
        self.intercept_ = (np.sum(second**2, axis=1) - np.sum(first**2, axis=1)) / 2
        return self


if __name__ == "__main__":
    check_hasher(RandomPairs(16, random_state=0))
    X, y = load_digits(return_X_y=True)
    hasher = RandomPairs(32, random_state=0).fit(X[:1000])
    precision = precision_at(hasher.encode(X[1000:]), hasher.encode_database(X[:1000]), y[1000:], y[:1000])
    print(f"obeys the contract; P@10 {precision:.3f}")
    assert precision > 0.6
