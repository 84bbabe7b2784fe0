import numpy as np
import pytest
from sklearn.datasets import load_digits

from starshl.hashers.baselines import RandomRotation


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).standard_normal((60, 16)) * np.linspace(1, 3, 16)


def test_complete_rotation_is_orthogonal(cloud):
    R = RandomRotation(16, random_state=0).fit(cloud).components_
    np.testing.assert_allclose(R @ R.T, np.eye(16), atol=1e-12)


def test_mean_hamming_distance_over_rotations_is_the_angle(cloud):
    centered = cloud - cloud.mean(axis=0)
    unit = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    angles = np.arccos(np.clip(unit[:10] @ unit[10:20].T, -1, 1))
    n_seeds = 400
    shares = np.mean([_hamming_share(cloud, seed) for seed in range(n_seeds)], axis=0)
    # Bits of one rotation are close to independent: the standard error is below 0.5 / sqrt(400 * 16).
    assert np.abs(shares - angles / np.pi).max() < 5 * 0.5 / np.sqrt(n_seeds * 16)


def _hamming_share(cloud, seed):
    codes = RandomRotation(16, random_state=seed).fit(cloud).encode(cloud)
    return codes[:10].distances(codes[10:20]) / 16


def test_more_bits_than_the_rank_are_refused_with_the_largest_allowed():
    with pytest.raises(ValueError, match=r"n_bits is 65; .* at most 61"):
        RandomRotation(65).fit(load_digits().data)
