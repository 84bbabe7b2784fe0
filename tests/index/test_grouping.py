"""Equal codes are grouped through a hash table, whichever bits the codes differ in."""

import numpy as np
import pytest

from starshl import BinaryCodes
from starshl.codes.hamming import to_planes
from starshl.index._bucket_loops import count_groups, group_rows, hash_slot

N_CODES = 1 << 14
N_SLOTS = 2 * N_CODES


def codes_of_words(words, n_words=1):
    """Return codes whose last 64 bits are the given words and whose other bits are zero."""
    padded = np.zeros((len(words), n_words), np.uint64)
    padded[:, -1] = words
    return BinaryCodes(padded.view(np.uint8).copy(), 64 * n_words)


def n_slots_used(codes):
    planes = to_planes(codes)
    return len({hash_slot(planes, row, N_SLOTS - 1) for row in range(len(codes))})


@pytest.mark.parametrize("n_words", [1, 2, 4])
@pytest.mark.parametrize("shift", [0, 7, 20, 33, 46, 50])
def test_codes_that_differ_in_any_14_bits_spread_over_the_slots_like_random_ones(shift, n_words):
    # Random hashes fill 1 - exp(-1/2) = 39% of twice as many slots; a hash that misses bits fills a few.
    codes = codes_of_words(np.arange(N_CODES, dtype=np.uint64) << np.uint64(shift), n_words)
    assert 0.37 < n_slots_used(codes) / N_SLOTS < 0.51


@pytest.mark.parametrize("step", [3, 1 << 20, (1 << 46) + 1, 0x9E3779B97F4A7C15])
def test_codes_at_equal_steps_spread_over_the_slots(step):
    with np.errstate(over="ignore"):
        words = np.arange(N_CODES, dtype=np.uint64) * np.uint64(step)
    assert 0.37 < n_slots_used(codes_of_words(words)) / N_SLOTS < 0.51


def test_codes_that_differ_in_their_top_bits_are_counted_and_grouped():
    words = (np.arange(160_000, dtype=np.uint64) % np.uint64(80_000)) << np.uint64(46)
    planes = to_planes(codes_of_words(words))
    assert count_groups(planes, 160_000) == 80_000
    groups, firsts = group_rows(planes)
    assert np.array_equal(groups, np.arange(160_000) % 80_000)
    assert np.array_equal(firsts, np.arange(80_000))
