"""Methods whose mathematics is a projection take sparse rows as they are."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from starshl.hashers import configurations
from starshl.hashers.baselines import ITQ, KSH, LSHash, PCAHash, RandomRotation, SignBinarizer

TAKE_SPARSE = [
    LSHash(16, random_state=0),
    LSHash(16, variant="super_bit", random_state=0),
    PCAHash(16),
    ITQ(16, random_state=0),
    RandomRotation(16, random_state=0),
    SignBinarizer(threshold="mean"),
    SignBinarizer(16, threshold="zero"),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 40)) * (rng.random((200, 40)) < 0.2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("hasher", TAKE_SPARSE, ids=str)
def test_sparse_and_dense_rows_give_the_same_codes(rows, hasher, dtype):
    rows = rows.astype(dtype)
    dense, sparse = hasher.fit_transform(rows), hasher.fit_transform(csr_matrix(rows))
    # A score that is zero up to rounding may fall on either side.
    assert np.mean(dense == sparse) > 0.999
    assert np.array_equal(hasher.transform(rows), sparse)


def test_the_facts_name_the_methods_that_take_sparse_rows(rows):
    named = {method.name for method in configurations() if method.facts.sparse}
    assert named == {
        "StarRidge", "StarSHL", "LSHash", "Super-bit LSH", "PCAHash", "ITQ", "RandomRotation", "SignBinarizer"
    }  # fmt: skip


@pytest.mark.parametrize(
    "hasher", [KSH(4), LSHash(4, variant="bit_sampling"), SignBinarizer(threshold="median")], ids=str
)
def test_methods_that_need_dense_rows_say_so(rows, hasher):
    with pytest.raises(TypeError, match="does not support sparse input"):
        hasher.fit(csr_array(rows), np.arange(200) % 2)


def test_too_many_sparse_features_for_a_covariance_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"has 5,000 features.*TruncatedSVD"):
        PCAHash(2).fit(csr_array((10, 5000)))
