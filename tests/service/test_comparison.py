"""Exact search and a baseline beside the codes: right wherever the rows lie, and never of another state."""

import numpy as np
import pytest

from starshl import Collection
from starshl.evaluation.benchmark import ByCodes
from starshl.hashers.baselines import LSHash
from starshl.service import Service
from starshl.service.jobs import RunningJob
from starshl.service.writes import NewItems


@pytest.fixture
def opened():
    """A function of a folder that returns its service, which is closed at the end."""
    services = []

    def open_service(folder):
        services.append(Service([folder]))
        return services[-1]

    yield open_service
    for service in services:
        service.close()


def test_exact_search_is_exact_for_rows_far_from_zero(opened, tmp_path):
    X = 10_000 + 30 * np.random.default_rng(0).standard_normal((400, 12))
    with Collection.create(tmp_path / "far", LSHash(8, random_state=0).fit(X), vectors="float16") as collection:
        ids = collection.add(X)
        kept = collection.vectors(ids)
    others = opened(tmp_path / "far").workspace("far").comparison
    others.prepare(RunningJob("compare", "far"))
    for query in X[:50]:
        exact = ((kept - query) ** 2).sum(axis=1)
        found = others.search(query, 10)[0].ids
        assert exact[found] == pytest.approx(np.sort(exact)[:10], abs=0.02), "kept vectors may be equal"


def test_the_first_search_that_is_timed_is_not_the_first_one(opened, folder, rows, monkeypatch):
    calls, nearest = [], ByCodes.nearest

    def count(search, X, k, among=None):
        calls.append("all" if among is None else "some")
        return nearest(search, X, k, among)

    monkeypatch.setattr(ByCodes, "nearest", count)
    others = opened(folder).workspace("things").comparison
    others.prepare(RunningJob("compare", "things"))
    assert sorted(calls) == ["all", "some"]
    assert others.search(rows[5], 1)[1].ids == [5]


def test_what_was_prepared_before_a_restore_is_prepared_again(opened, folder, rows):
    service = opened(folder)
    searcher, others = service.searcher("things"), service.workspace("things").comparison

    def move_item(far):
        searcher.upsert(NewItems((rows[5:6] + far).tolist(), ids=[5])).result(60)

    service.snapshots("things").make(searcher, "before")
    move_item(5.0)
    others.prepare(RunningJob("compare", "things"))
    assert others.is_ready
    service.snapshots("things").restore(searcher, "before")
    move_item(50.0)
    assert not others.is_ready
    others.prepare(RunningJob("compare", "things"))
    assert others.search(rows[5] + 50.0, 1)[0].ids == [5]
