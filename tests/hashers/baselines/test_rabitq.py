import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from starshl.hashers.baselines import LSHash, RaBitQ

VARIANTS = ["dense", "hadamard"]


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0] / 16.0


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).standard_normal((60, 16)) * np.linspace(1, 3, 16)


@pytest.mark.parametrize("variant", VARIANTS)
def test_complete_rotation_is_orthogonal(cloud, variant):
    R = RaBitQ(16, variant=variant, random_state=0).fit(cloud).components_
    np.testing.assert_allclose(R @ R.T, np.eye(16), atol=1e-12)


def test_padded_hadamard_rotation_keeps_inner_products(digits):
    rows = digits[:, :40]
    scores = RaBitQ(64, variant="hadamard", random_state=0).fit(rows).decision_function(rows)
    np.testing.assert_allclose(scores @ scores.T, _centered_gram(rows), atol=1e-9)


def _centered_gram(rows):
    centered = rows - rows.mean(axis=0)
    return centered @ centered.T


@pytest.mark.parametrize("n_bits", [6, 16])
def test_asymmetric_products_are_unbiased_over_rotations(cloud, n_bits):
    estimates = []
    for seed in range(600):
        hasher = RaBitQ(n_bits, random_state=seed).fit(cloud)
        estimates.append(hasher.asymmetric_products(cloud[:5], hasher.sketch(cloud[5:12])))
    standard_error = np.std(estimates, axis=0) / np.sqrt(600)
    centered = cloud - cloud.mean(axis=0)
    bias = np.mean(estimates, axis=0) - centered[:5] @ centered[5:12].T
    assert np.all(np.abs(bias) < 4.5 * standard_error)


def test_asymmetric_distance_to_a_rotated_corner_is_exact(cloud):
    hasher = RaBitQ(16, random_state=0).fit(cloud)
    corner = hasher.mean_ + 2.0 * np.where(np.arange(16) % 3, 1.0, -1.0) @ hasher.components_
    estimated = hasher.asymmetric_distances(cloud, hasher.sketch(corner[None]))
    np.testing.assert_allclose(estimated, cdist(cloud, corner[None], "sqeuclidean"), atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_asymmetric_distances_rank_better_than_hamming(digits, variant):
    hasher = RaBitQ(60, variant=variant, random_state=0).fit(digits[:1500])
    items, queries = digits[:1500], digits[1500:1600]
    true = np.argsort(cdist(queries, items), axis=1)[:, :10]

    def recall(distances):
        found = np.argsort(distances, axis=1, kind="stable")[:, :10]
        return np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, true, strict=True)])

    hamming = recall(hasher.encode(queries).distances(hasher.encode(items)))
    assert recall(hasher.asymmetric_distances(queries, hasher.sketch(items))) > hamming + 0.05


def test_row_at_the_center_has_product_zero(cloud):
    hasher = RaBitQ(8, random_state=0).fit(cloud)
    sketch = hasher.sketch(hasher.mean_[None])
    np.testing.assert_allclose(hasher.asymmetric_products(cloud, sketch), 0, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_more_bits_than_dimensions_are_refused_with_the_largest_allowed(digits, variant):
    with pytest.raises(ValueError, match=r"n_bits is 65; .* at most 64"):
        RaBitQ(65, variant=variant).fit(digits)


def test_sketch_of_another_length_is_refused(cloud):
    short, long = (RaBitQ(n, random_state=0).fit(cloud) for n in (4, 8))
    with pytest.raises(ValueError, match="codes of 4 bits"):
        long.asymmetric_distances(cloud, short.sketch(cloud))


def test_all_bits_are_those_of_a_complete_rotation(digits):
    rows = digits[:, :40]
    assert RaBitQ().fit(rows).n_bits_ == 40
    assert RaBitQ(variant="hadamard").fit(rows).n_bits_ == 64


def test_hamming_distances_are_those_of_super_bit_lsh(digits):
    def distances(hasher):
        codes = hasher.fit(digits).encode(digits[:30])
        return codes.distances(codes)

    estimates = np.array(
        [
            [distances(RaBitQ(16, random_state=seed)), distances(LSHash(16, variant="super_bit", random_state=seed))]
            for seed in range(200)
        ]
    )
    means, largest = estimates.mean(axis=0), estimates.std(axis=0).max()
    # Five standard errors of a difference of two means, because 435 pairs are compared.
    assert np.abs(means[0] - means[1]).max() < 5 * largest * np.sqrt(2 / 200)
