"""All code lengths of a method on the same rows share work; no code may change by it."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest

from starshl._common import result_cache
from starshl._common.result_cache import ResultCache, caching_results
from starshl.learning.kernels import expansion
from starshl.learning.kernels.distances import DistanceCache
from starshl.reproduction import RecordFolder, SummaryFolder, execute, figure, make_plan

LENGTHS = [5, 16]


@pytest.fixture(scope="module")
def runs():
    return make_plan([figure("digits")], bits=LENGTHS, n_runs=1, quick=True).runs


@pytest.fixture(scope="module")
def alone(runs):
    return {planned.key.text: planned.perform().digests for planned in runs}


def test_codes_are_those_of_a_run_alone(runs, alone):
    together = {}
    works = {planned.group: ResultCache(min_seconds=0.0) for planned in runs}
    for planned in runs:
        with caching_results(works[planned.group]):
            together[planned.key.text] = planned.perform().digests
    assert together == alone


@pytest.mark.parametrize("method", ["starshl-paper", "starshl"])
def test_codes_are_those_of_a_run_alone_where_distances_to_the_queries_are_kept(method, monkeypatch):
    # Pieces and tiles that do not fit 1,000 rows and 797 queries, so that both ends are met.
    monkeypatch.setattr(expansion, "SUPPORT_TILE", 96)
    monkeypatch.setattr(expansion, "QUERY_TILE", 64)
    planned_runs = make_plan([figure("digits")], bits=LENGTHS, methods=[method], n_runs=1).runs
    work, used, find = ResultCache(), [], DistanceCache.find
    monkeypatch.setattr(DistanceCache, "find", lambda cache, support: used.append(cache) or find(cache, support))
    for planned in planned_runs:
        alone = planned.perform().digests
        assert not (planned is planned_runs[0] and used)
        with caching_results(work):
            assert planned.perform().digests == alone
    assert any(cache.pieces for cache in used)


def test_every_method_with_a_kernel_or_codewords_finds_work_done(runs):
    saved = {}
    for method in ("starshl", "starridge", "ksh", "hc-sdh", "codeword-svm"):
        work = ResultCache(min_seconds=0.0)
        with caching_results(work):
            for planned in runs:
                if planned.key.method == method:
                    planned.perform()
        saved[method] = work.seconds_saved
    assert all(saved.values()), saved


def test_a_fit_that_was_shared_counts_with_its_own_seconds(runs, monkeypatch):
    # A clock by which everything that is shared took a thousand seconds.
    monkeypatch.setattr(result_cache, "time", SimpleNamespace(perf_counter=count(step=1000).__next__))
    first, second = (planned for planned in runs if planned.key.method == "starridge")
    with caching_results(ResultCache(min_seconds=0.0)):
        first.perform()
        assert second.perform().seconds["fit"] >= 1000


def test_the_lengths_of_a_method_are_done_one_after_the_other(runs, tmp_path):
    # The quickest methods; their lengths are listed alternately.
    mixed = [planned for n_bits in LENGTHS for planned in runs if planned.key.n_bits == n_bits]
    mixed = [planned for planned in mixed if planned.key.method in ("lsh", "sph")]
    done = []
    execute(
        mixed,
        RecordFolder(tmp_path / "records"),
        SummaryFolder(tmp_path / "summaries"),
        report=lambda progress: done.append(progress.title.split(",")[0]),
    )
    assert done == ["SPH", "SPH", "LSH", "LSH"]
