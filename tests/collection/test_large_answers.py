"""What one item, or one search, may take in memory."""

import tracemalloc

import numpy as np
import pytest

from starshl import Collection
from starshl.hashers.baselines import LSHash


@pytest.fixture
def collection(tmp_path):
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    with Collection.create(tmp_path / "items", LSHash(16, random_state=0).fit(X)) as collection:
        collection.add(X)
        yield collection


def test_a_search_by_radius_reads_k_items_of_each_query_and_holds_few_queries_at_a_time(collection):
    queries = collection.ids[:400]
    tracemalloc.start()
    found = collection.search(items=queries, k=1, radius=16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(len(each), each.total) for each in found] == [(1, 30_000)] * 400
    # Distances and ids of all items for all queries take 144 MB and more.
    assert peak < 100e6


def test_queries_of_a_search_by_radius_do_not_meet(collection):
    queries = collection.ids[::500]
    together = collection.search(items=queries, k=5, radius=3)
    assert together == [collection.search(items=[query], k=5, radius=3)[0] for query in queries]


def test_metadata_of_more_than_a_megabyte_are_refused(collection):
    with pytest.raises(ValueError, match=r"metadata\[0\] takes"):
        collection.update([0], [{"page": "x" * 1_000_000}])
    collection.update([0], [{"page": "x" * 999_000}])
