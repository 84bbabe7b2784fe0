import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash


@pytest.fixture(scope="session")
def rows():
    return np.random.default_rng(0).standard_normal((60, 8))


@pytest.fixture(scope="session")
def hasher(rows):
    return LSHash(24, random_state=0).fit(rows)


@pytest.fixture
def folder(tmp_path, hasher, rows):
    """A closed collection of 60 items with labels 0, 1, 2 and prices 0 ... 59."""
    path = tmp_path / "items"
    with Collection.create(path, hasher) as collection:
        metadata = [{"label": i % 3, "price": i, "name": f"no {i}"} for i in range(60)]
        collection.add(rows, metadata=metadata, references=[f"images/{i}.png" for i in range(60)])
    return path


@pytest.fixture
def kind():
    """How vectors are kept, unless a test tries both ways."""
    return "float16"


@pytest.fixture
def kept(tmp_path, hasher, rows, kind):
    """A closed collection of 60 items that keeps their vectors."""
    path = tmp_path / "kept"
    with Collection.create(path, hasher, vectors=kind) as collection:
        collection.add(rows, metadata=[{"price": number} for number in range(60)])
    return path
