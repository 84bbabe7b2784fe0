"""Ids as runs: the same answers as listed ids, in no memory worth mentioning."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes.hamming import to_planes
from starshl.index import FlatIndex
from starshl.index.items import FlatItems, RunItems

LIMITS = np.array([-(2**63), -(2**63) + 1, -(2**63) + 2, -(2**63) + 3, 2**63 - 4, 2**63 - 3, 2**63 - 2, 2**63 - 1])


def some_codes(n_items):
    return BinaryCodes(np.random.default_rng(0).integers(0, 256, (n_items, 3), dtype=np.uint8), 24)


def some_ids(rng, n_runs):
    """Return ascending ids of several runs."""
    ids = np.arange(40 * n_runs)
    return ids[~np.isin(ids, rng.choice(ids[2:-2:3], n_runs - 1, replace=False))] + int(rng.integers(-100, 100))


def both_kinds(ids):
    planes = to_planes(some_codes(len(ids)))
    return RunItems.of(24, planes, ids), FlatItems(24, planes, ids, len(ids))


@pytest.mark.parametrize("n_runs", [1, 2, 9])
def test_runs_hold_the_same_ids_as_a_list(n_runs):
    rng = np.random.default_rng(n_runs)
    ids = some_ids(rng, n_runs)
    runs, listed = both_kinds(ids)
    assert isinstance(runs, RunItems)
    assert len(runs.first_ids) == n_runs
    assert (runs.ids == ids).all()
    assert len(runs) == len(ids)
    assert runs.last_id == listed.last_id == ids[-1]
    wanted = np.concatenate([ids, ids - 3, [ids[0] - 1, ids[-1] + 1, -(2**63), 2**63 - 1]])
    assert (runs.find(wanted) == listed.find(wanted)).all()
    positions = rng.integers(len(ids), size=(3, 5))
    assert (runs.ids_at(positions) == ids[positions]).all()


def test_ids_at_both_ends_of_64_bits_are_found():
    runs, _ = both_kinds(LIMITS)
    assert isinstance(runs, RunItems)
    assert (runs.ids == LIMITS).all()
    assert runs.find(LIMITS).tolist() == list(range(8))
    assert runs.find(np.array([0, -(2**63) + 4, 2**63 - 5])).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("step", [1, 2])
def test_appended_items_leave_earlier_ones_as_they_are(step):
    rng = np.random.default_rng(0)
    items, ids, earlier = RunItems.empty(24), np.empty(0, np.int64), []
    for _ in range(40):
        gap = int(rng.integers(1, 3)) if rng.random() < 0.3 else 1
        new = (ids[-1] if len(ids) else 0) + gap + step * np.arange(rng.integers(1, 9))
        items = items.inserted(some_codes(len(new)), new)
        ids = np.concatenate([ids, new])
        earlier.append((items, ids))
        for then, seen in earlier[:: len(earlier) // 3 + 1]:
            assert (then.ids == seen).all()
            assert (then.find(seen) == np.arange(len(seen))).all()
    assert isinstance(items, RunItems if step == 1 else FlatItems)


def test_consecutive_ids_take_no_memory_and_give_the_same_answers():
    codes = BinaryCodes(np.random.default_rng(0).integers(0, 256, (5000, 16), dtype=np.uint8), 128)
    index = FlatIndex.from_codes(codes)
    assert index.nbytes == 16 * 5000 + 16
    index.remove(np.arange(0, 5000, 100))
    assert index.nbytes == 16 * 4950 + 16 * 50
    kept = np.setdiff1d(np.arange(5000), np.arange(0, 5000, 100))
    assert (index.ids == kept).all()
    scattered = FlatIndex.from_codes(codes[kept], ids=3 * kept)
    assert scattered.nbytes == 24 * 4950
    expected, found = scattered.search(codes[:20], 15), index.search(codes[:20], 15)
    assert (expected.distances == found.distances).all()
    assert (expected.ids == 3 * found.ids).all()
    expected, found = scattered.search_radius(codes[:3], 50), index.search_radius(codes[:3], 50)
    assert (expected.ids == 3 * found.ids).all()
