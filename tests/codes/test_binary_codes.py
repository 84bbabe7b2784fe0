"""Packed codes: bit order, padding, distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from starshl import BinaryCodes
from starshl.codes import signs_of

SIGNS = arrays(np.int8, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.sampled_from([-1, 1]))


@given(SIGNS)
def test_signs_survive_packing(signs):
    codes = BinaryCodes.from_signs(signs)
    assert np.array_equal(codes.to_signs(), signs)
    assert codes.to_signs().dtype == np.int8
    assert codes.packed.shape == (len(signs), -(-signs.shape[1] // 8))
    assert codes.nbytes == codes.packed.size


@given(SIGNS)
def test_bit_j_is_bit_j_mod_8_of_byte_j_div_8(signs):
    packed = BinaryCodes.from_signs(signs).packed
    for j in range(signs.shape[1]):
        assert np.array_equal(packed[:, j // 8] >> (j % 8) & 1, signs[:, j] > 0)
    unused = -signs.shape[1] % 8
    assert np.all(packed[:, -1] >> (8 - unused) == 0) if unused else True


@given(SIGNS)
def test_distances_count_differing_bits(signs):
    codes = BinaryCodes.from_signs(signs)
    distances = codes.distances(codes)
    assert distances.dtype == np.int32
    assert np.array_equal(distances, (signs[:, None] != signs[None]).sum(axis=2))
    inner = signs.astype(int) @ signs.T.astype(int)
    assert np.array_equal(inner, signs.shape[1] - 2 * distances)


def test_twelve_bits_take_two_bytes():
    codes = BinaryCodes.from_signs(np.array([[1] * 12, [-1] * 12]))
    assert codes.packed.tolist() == [[255, 15], [0, 0]]
    assert codes.distances(codes)[0, 1] == 12


def test_zero_scores_are_plus():
    assert signs_of(np.array([-0.0, 0.0, -1e-300, 1e-300])).tolist() == [1, 1, -1, 1]
    assert signs_of([0.5]).dtype == np.int8


def test_selection_keeps_codes():
    signs = np.where(np.random.default_rng(0).random((6, 11)) < 0.5, -1, 1)
    codes = BinaryCodes.from_signs(signs)
    assert len(codes) == 6
    assert codes[2] == BinaryCodes.from_signs(signs[2:3])
    assert codes[[4, 1]] == BinaryCodes.from_signs(signs[[4, 1]])
    assert codes[1:3] == BinaryCodes.from_signs(signs[1:3])
    assert codes[signs[:, 0] > 5] == BinaryCodes.from_signs(signs[:0])
    assert codes != BinaryCodes(codes.packed, 12)
    assert codes != "codes"


@pytest.mark.parametrize(
    ("packed", "n_bits", "message"),
    [
        (np.zeros((2, 1), np.int64), 8, "dtype int64"),
        (np.zeros((2, 1), np.uint8), 9, r"shape \(n_codes, 2\)"),
        (np.zeros(2, np.uint8), 8, "shape"),
        (np.array([[8]], np.uint8), 3, "padding"),
        (np.zeros((2, 1), np.uint8), 0, "n_bits is 0"),
        (np.zeros((2, 1), np.uint8), 1.5, "n_bits is 1.5"),
        (np.zeros((2, 1), np.uint8), float("nan"), "n_bits is nan"),
        (np.zeros((2, 1), np.uint8), "8", "n_bits is '8'"),
    ],
)
def test_what_is_no_code_is_refused(packed, n_bits, message):
    with pytest.raises(ValueError, match=message):
        BinaryCodes(packed, n_bits)


@pytest.mark.parametrize("signs", [np.ones(3), np.ones((2, 0)), np.ones((1, 2, 3))])
def test_signs_must_be_a_matrix(signs):
    with pytest.raises(ValueError, match="signs has shape"):
        BinaryCodes.from_signs(signs)


def test_codes_of_different_lengths_have_no_distance():
    with pytest.raises(ValueError, match="3 and of 4 bits"):
        BinaryCodes.from_signs(np.ones((1, 3))).distances(BinaryCodes.from_signs(np.ones((1, 4))))


def test_an_array_of_codes_names_the_two_ways_to_get_one():
    codes = BinaryCodes.from_signs(np.ones((2, 9)))
    for convert in (np.asarray, np.array, np.sum, lambda codes: np.ones(2) * codes):
        with pytest.raises(TypeError, match=r"\.packed .* \.to_signs\(\)"):
            convert(codes)


def test_codes_come_one_by_one_and_say_what_they_are():
    signs = np.where(np.random.default_rng(0).random((3, 11)) < 0.5, -1, 1)
    codes = BinaryCodes.from_signs(signs)
    assert [code.to_signs().tolist() for code in codes] == [[row] for row in signs.tolist()]
    assert repr(codes) == "BinaryCodes(3 codes of 11 bits)"
