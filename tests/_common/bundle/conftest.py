import numpy as np
import pytest

import starshl
from starshl import StarSHL
from starshl.hashers.baselines import LSHash


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture(scope="module")
def models(rows):
    y = (rows[:, 0] > 0).astype(int)
    return {
        "StarSHL": StarSHL(5, random_state=0).fit(rows, y),
        "graph": StarSHL(
            4,
            kernels=[
                starshl.learning.kernels.graph_gaussian.GraphGaussian(),
                starshl.learning.kernels.vectors.Gaussian(1.0),
            ],
            random_state=0,
        ).fit(rows, np.where(np.arange(40) < 20, y, -1)),
        "LSHash": LSHash(5, random_state=0).fit(rows),
    }
