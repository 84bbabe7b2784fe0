"""Multi-index hashing against the scan it replaces."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.index import FlatIndex, MultiIndex, multi


@pytest.fixture
def always_probe(monkeypatch):
    monkeypatch.setattr(multi, "CODES_PER_PROBE", 0)


def clustered_codes(n_codes, n_bits, seed):
    """Codes around few centers, so that small balls hold several of them."""
    rng = np.random.default_rng(seed)
    centers = rng.choice([-1, 1], size=(20, n_bits))
    flips = np.where(rng.random((n_codes, n_bits)) < 3 / n_bits, -1, 1)
    return BinaryCodes.from_signs(centers[rng.integers(20, size=n_codes)] * flips)


@pytest.mark.parametrize("n_bits", [6, 12, 64, 70, 130])
@pytest.mark.parametrize("radius", [0, 1, 2, 5, 8])
@pytest.mark.usefixtures("always_probe")
def test_tables_find_the_same_balls_as_a_scan(n_bits, radius):
    codes = clustered_codes(700, n_bits, seed=0)
    probed = MultiIndex.from_codes(codes, np.arange(700)[::-1])
    flat = FlatIndex.from_codes(codes, np.arange(700)[::-1])
    for among in (None, np.arange(0, 700, 2)):
        found = probed.search_radius(codes[:40], radius, among=among)
        expected = flat.search_radius(codes[:40], radius, among=among)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.usefixtures("always_probe")
def test_tables_follow_additions_and_removals():
    codes = clustered_codes(300, 32, seed=0)
    probed = MultiIndex.from_codes(codes[:200])
    probed.search_radius(codes[:1], 2)
    probed.add(codes[slice(200, None)])
    probed.remove([0, 250])
    flat = FlatIndex.from_codes(codes)
    flat.remove([0, 250])
    found, expected = (index.search_radius(codes, 4) for index in (probed, flat))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_ball_that_costs_more_to_probe_than_to_scan_is_scanned():
    codes = clustered_codes(2000, 64, seed=0)
    probed = MultiIndex.from_codes(codes)
    probed.search_radius(codes[:2], 30)
    assert probed.nbytes == codes.nbytes + 8 * len(codes)
