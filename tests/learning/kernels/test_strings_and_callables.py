"""Kernels on strings and kernels given as functions."""

from collections import Counter

import numpy as np
import pytest

from starshl.learning.kernels import CallableKernel, SpectrumKernel


def plain_spectrum(a, b, length):
    parts = [Counter(s[i : i + k] for k in range(1, length + 1) for i in range(len(s) - k + 1)) for s in (a, b)]
    inner = sum(parts[0][part] * parts[1][part] for part in parts[0])
    norms = [sum(count**2 for count in p.values()) for p in parts]
    return inner / np.sqrt(norms[0] * norms[1]) if all(norms) else 0.0


def test_spectrum_by_hand():
    # "aab": a 2, b 1, aa 1, ab 1; "ab": a 1, b 1, ab 1; inner 2 + 1 + 1, norms 7 and 3.
    assert SpectrumKernel(2)(["aab"], ["ab"]).item() == pytest.approx(4 / np.sqrt(21))
    assert SpectrumKernel(1)(["aab"], ["cd"]).item() == 0


def test_spectrum_matches_a_plain_count():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcé🙂"), rng.integers(0, 9))) for _ in range(20)]
    for length in (1, 2, 5):
        expected = [[plain_spectrum(a, b, length) for b in words] for a in words]
        assert SpectrumKernel(length)(words, words) == pytest.approx(np.array(expected))


def test_spectrum_of_new_strings_does_not_depend_on_the_batch():
    words, new = ["abc", "bcd", "xyz"], ["abq", "", "zzz"]
    together = SpectrumKernel(3)(new, words)
    apart = np.vstack([SpectrumKernel(3)([word], words) for word in new])
    assert together == pytest.approx(apart)


def test_empty_strings_have_kernel_zero():
    assert SpectrumKernel()(["", "a"], ["", "a"]).tolist() == [[0, 0], [0, 1]]
    assert SpectrumKernel().diagonal(["", "a"]).tolist() == [0, 1]
    assert SpectrumKernel()([""], [""]).tolist() == [[0]]


def test_spectrum_refuses_what_is_no_string():
    with pytest.raises(ValueError, match="type int"):
        SpectrumKernel()([1], ["a"])
    with pytest.raises(ValueError, match="length"):
        SpectrumKernel(0)


def overlap(x, z):
    return len(set(x) & set(z))


def overlap_of_blocks(A, B):
    return [[overlap(a, b) for b in B] for a in A]


SAMPLES = np.array(["abc", "bcd", "xyz", "a", ""], dtype=object)


@pytest.mark.parametrize("function", [overlap, overlap_of_blocks])
def test_functions_of_samples_and_of_blocks_give_the_same_kernel(function):
    kernel = CallableKernel(function).fit(SAMPLES)
    expected = np.array(overlap_of_blocks(SAMPLES, SAMPLES), dtype=float)
    assert np.array_equal(kernel.gram(SAMPLES), expected)
    assert np.array_equal(kernel(SAMPLES[:2], SAMPLES), expected[:2])
    assert np.array_equal(kernel.diagonal(SAMPLES), np.diag(expected))


PAIRS = {
    "dot": lambda x, z: x @ z,
    "dot as float": lambda x, z: float(x @ z),
    "gaussian": lambda x, z: np.exp(-np.sum((x - z) ** 2)),
    "product of sums": lambda x, z: x.sum() * z.sum(),
    "first entries": lambda x, z: x[0] * z[0],
}
BLOCKS = {
    "dot": lambda A, B: A @ B.T,
    "dot as list": lambda A, B: (A @ B.T).tolist(),
    "gaussian": lambda A, B: np.exp(-((A[:, None] - B[None]) ** 2).sum(2)),
}


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("n_rows", [2, 3, 6])
@pytest.mark.parametrize("name", PAIRS)
def test_function_of_pairs_is_told_from_one_of_blocks(name, n_rows, width):
    X = np.random.default_rng(1).normal(size=(n_rows, width))
    expected = [[PAIRS[name](x, z) for z in X] for x in X]
    assert CallableKernel(PAIRS[name]).fit(X).gram(X) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("n_rows", [2, 3, 6])
@pytest.mark.parametrize("name", BLOCKS)
def test_function_of_blocks_is_called_on_blocks(name, n_rows, width):
    X = np.random.default_rng(1).normal(size=(n_rows, width))
    kernel = CallableKernel(BLOCKS[name]).fit(X)
    assert kernel.gram(X) == pytest.approx(np.asarray(BLOCKS[name](X, X)))
    assert kernel._takes_blocks


def test_fit_leaves_the_kernel_as_it_was():
    kernel = CallableKernel(overlap_of_blocks)
    kernel.fit(SAMPLES)
    assert kernel._takes_blocks is None


def test_error_of_a_function_reaches_the_user():
    def broken(x, z):
        raise RuntimeError("my own mistake")

    with pytest.raises(RuntimeError, match="my own mistake"):
        CallableKernel(broken).fit(SAMPLES).gram(SAMPLES)
