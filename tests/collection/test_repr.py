"""A collection says in a notebook where it is and what it holds."""

import numpy as np

from starshl import Collection
from starshl.hashers.baselines import LSHash


def test_a_collection_says_what_it_holds(tmp_path):
    rows = np.random.default_rng(0).standard_normal((5, 3))
    folder = tmp_path / "things"
    with Collection.create(folder, LSHash(8, random_state=0).fit(rows)) as collection:
        collection.add(rows)
        assert repr(collection) == f"Collection({str(folder)!r}, 5 items, 8 bits of LSHash)"
    assert repr(collection) == f"Collection({str(folder)!r}, closed)"
