"""Your own hashing method that is not linear: write the scores yourself, and check the contract."""

from typing import Self

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from starshl.evaluation import precision_at
from starshl.hashers import BaseHasher, Facts, LabelsLike, SamplesLike, Seed, all_or_nothing, check_integer, check_rows
from starshl.testing import check_hasher

N_DIRECTIONS = 16


class RandomBalls(BaseHasher):
    """Bit b tells whether a row lies in a ball around a random row, seen along the directions that vary most.

    A LinearHasher learns ``components_`` and ``intercept_`` only; here, scores are radii minus distances.
    """

    facts = Facts(paper="none: an example", year=2026, labels="ignored", cost="features^3 + n x features^2")

    def __init__(self, n_bits: int = 32, *, n_jobs: int | None = None, random_state: Seed = None):
        self.n_bits = n_bits
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing  # a fit that fails or is interrupted leaves the hasher as it was
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True)
        centers = X[check_random_state(self.random_state).randint(len(X), size=n_bits)]
        with threadpool_limits(1):  # sums of BLAS change in their last bits with the number of its threads
            _, directions = np.linalg.eigh(np.cov(X, rowvar=False, dtype=np.float64))
            self.directions_ = directions[:, -N_DIRECTIONS:]
            self.centers_ = centers @ self.directions_
            self.radii_ = np.median(self._distances(X), axis=0)
        return self

    def _scores(self, X: SamplesLike) -> np.ndarray:  # all that encode, search and model files need
        X = check_rows(self, X, fitting=False)
        with threadpool_limits(1):
            return np.asarray(self.radii_ - self._distances(X), X.dtype)

    def _distances(self, X: np.ndarray) -> np.ndarray:
        rows = X @ self.directions_
        return np.stack([np.linalg.norm(rows - center, axis=1) for center in self.centers_], axis=1)


if __name__ == "__main__":
    check_hasher(RandomBalls(16, random_state=0))  # lists all that fails, and how to pass it
    X, y = load_digits(return_X_y=True)
    hasher = RandomBalls(32, random_state=0).fit(X[:1000])
    precision = precision_at(hasher.encode(X[1000:]), hasher.encode_database(X[:1000]), y[1000:], y[:1000])
    print(f"obeys the contract; P@10 {precision:.3f}")
    assert precision > 0.5
