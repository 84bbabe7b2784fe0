import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash


@pytest.fixture(scope="session")
def points():
    """Three groups of 40 points each in five dimensions, and which group each belongs to."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 40)
    centers = 6 * np.eye(3, 5)
    order = rng.permutation(len(groups))
    groups = groups[order]
    return centers[groups] + rng.standard_normal((len(groups), 5)), groups


@pytest.fixture(scope="session")
def hasher(points):
    return LSHash(16, random_state=0).fit(points[0])


@pytest.fixture
def collection(tmp_path, points, hasher):
    """An open collection of the points without labels; the ids are 100, 101, ..."""
    with Collection.create(tmp_path / "points", hasher, vectors="float16") as opened:
        opened.add(points[0], ids=np.arange(100, 220), references=[f"{i}.png" for i in range(120)])
        yield opened
