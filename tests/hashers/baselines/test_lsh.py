import numpy as np
import pytest

from starshl.exceptions import InputError
from starshl.hashers.baselines import LSHash

N_BITS = 200_000


def agreement(hasher, rows):
    codes = hasher.transform(rows)
    return np.mean(codes[0] == codes[1])


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 3.0, np.pi])
def test_hyperplane_bits_agree_by_the_angle(angle):
    rows = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    hasher = LSHash(N_BITS, center=False, random_state=0).fit(rows)
    expected = 1 - angle / np.pi
    assert abs(agreement(hasher, rows) - expected) <= 3 * np.sqrt(expected * (1 - expected) / N_BITS) + 1e-9


def test_bit_sampling_agrees_by_the_manhattan_distance():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 4)) * [1.0, 5.0, 0.1, 0.0] + 7.0
    hasher = LSHash(N_BITS, variant="bit_sampling", random_state=0).fit(X)
    expected = 1 - np.abs(X[0] - X[1]).sum() / np.ptp(X, axis=0).sum()
    assert abs(agreement(hasher, X[:2]) - expected) < 3 * np.sqrt(0.25 / N_BITS)
    assert 3 not in hasher.features_


def test_bit_sampling_of_constant_rows_gives_equal_codes():
    codes = LSHash(8, variant="bit_sampling", random_state=0).fit_transform(np.full((4, 3), 2.5))
    assert (codes == 1).all()


def test_uncentered_codes_do_not_depend_on_the_scale_of_a_row():
    X = np.random.default_rng(1).standard_normal((30, 6))
    hasher = LSHash(64, center=False, random_state=0).fit(X)
    assert np.array_equal(hasher.transform(X), hasher.transform(7.5 * X))


def test_hyperplanes_do_not_depend_on_the_number_of_rows():
    X = np.random.default_rng(1).standard_normal((30, 6))
    first, second = (LSHash(9, random_state=3).fit(rows).components_ for rows in (X, X[:5]))
    assert np.array_equal(first, second)


def test_centering_moves_the_hyperplanes_through_the_mean():
    X = np.random.default_rng(2).standard_normal((40, 5)) + 100
    hasher = LSHash(16, random_state=0).fit(X)
    assert np.allclose(hasher.decision_function(X.mean(axis=0, keepdims=True)), 0, atol=1e-10)


def test_orthogonal_directions_are_orthonormal_within_blocks():
    X = np.random.default_rng(2).standard_normal((40, 5))
    directions = LSHash(12, variant="super_bit", random_state=0).fit(X).components_
    for start in (0, 5, 10):
        block = directions[start : start + 5]
        assert np.allclose(block @ block.T, np.eye(len(block)), atol=1e-12)


def test_unknown_variant_is_refused():
    with pytest.raises(InputError) as refused:
        LSHash(variant="minhash").fit(np.eye(3))
    assert (refused.value.parameter, refused.value.value) == ("variant", "minhash")


def test_codes_equal_those_of_faiss_for_its_directions():
    faiss = pytest.importorskip("faiss")
    X = np.random.default_rng(3).standard_normal((200, 20)).astype(np.float32)
    index = faiss.IndexLSH(20, 12, True)
    index.train(X)
    hasher = LSHash(12, center=False, random_state=0).fit(X)
    hasher.components_ = faiss.vector_to_array(index.rrot.A).reshape(12, 20)
    assert np.array_equal(hasher.encode(X).packed, index.sa_encode(X))
