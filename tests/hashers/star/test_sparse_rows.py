"""StarSHL on sparse rows, such as TF-IDF: the codes of the same rows as a dense array, and no dense copy of them."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

import starshl
from starshl import StarSHL
from starshl.exceptions import BundleFormatError
from starshl.learning.kernels import Gaussian, GraphGaussian, NormalizedLinear, NormalizedPolynomial
from starshl.learning.kernels.distances import PairTable, distinct_rows
from starshl.learning.kernels.vectors import median_distance

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def like_tf_idf(n_rows=150, n_words=400, seed=0):
    """Return rows of unit length with few words each, and the topic from which most of them come."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, 4, n_rows)
    rows = np.zeros((n_rows, n_words))
    for row, topic in zip(rows, topics, strict=True):
        common = rng.integers(0, n_words, 8)
        own = topic * 60 + rng.integers(0, 60, 12)
        np.add.at(row, np.concatenate([common, own]), rng.exponential(size=20))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), topics


KERNELS = {
    "scaled": "scaled",
    "paper": "paper",
    "linear": [NormalizedLinear()],
    "polynomial": [NormalizedPolynomial(degree=3)],
    "Gaussian": [Gaussian(0.8)],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_sparse_text_gets_the_codes_of_dense_text(name, dtype):
    X, y = like_tf_idf()
    X = X.astype(dtype)
    dense = StarSHL(8, kernels=KERNELS[name], random_state=0).fit(X[:100], y[:100])
    sparse = StarSHL(8, kernels=KERNELS[name], random_state=0).fit(csr_array(X[:100]), y[:100])
    scores = dense.decision_function(X[100:])
    # The dual solution is only as exact as svm_tol, and different rounding takes another path to it.
    assert np.allclose(sparse.decision_function(csr_array(X[100:])), scores, atol=0.02 * np.abs(scores).max())
    assert np.mean(sparse.transform(csr_array(X[100:])) == dense.transform(X[100:])) > 0.99
    assert isinstance(sparse.support_samples_, csr_array)


def test_sparse_digits_get_exactly_the_scores_of_dense_digits(digits):
    X, y = digits  # integers, whose products have no rounding
    dense = StarSHL(12, random_state=0).fit(X[:300], y[:300])
    sparse = StarSHL(12, random_state=0).fit(csr_array(X[:300]), y[:300])
    assert np.array_equal(sparse.decision_function(csr_array(X)), dense.decision_function(X))
    assert np.array_equal(sparse.predict(csr_array(X)), dense.predict(X))
    assert np.array_equal(sparse.transduction_, dense.transduction_)


def test_rows_to_be_hashed_may_be_sparse_or_dense_whatever_the_fit_saw(digits):
    X, y = digits
    for rows in (X[:200], csr_array(X[:200])):
        hasher = StarSHL(6, random_state=0).fit(rows, y[:200])
        scores = hasher.decision_function(X)
        for container in (csr_array, csr_matrix):
            assert np.allclose(hasher.decision_function(container(X)), scores)


def test_sparse_rows_are_clustered_without_labels(digits):
    X, _ = digits
    hasher = StarSHL(8, n_codewords=5, random_state=0).fit(csr_array(X[:150]))
    assert len(np.unique(hasher.assignments_)) == 5


def test_sparse_rows_of_weight_zero_count_as_absent(digits):
    X, y = digits
    weights = (np.arange(200) < 150).astype(float)
    weighted = StarSHL(6, random_state=0).fit(csr_array(X[:200]), y[:200], sample_weight=weights)
    alone = StarSHL(6, random_state=0).fit(csr_array(X[:150]), y[:150])
    assert np.allclose(weighted.decision_function(X), alone.decision_function(X))


def test_a_model_of_sparse_rows_comes_back_from_its_file(tmp_path):
    X, y = like_tf_idf()
    rows = csr_array(X)
    hasher = StarSHL(8, random_state=0).fit(rows, y)
    hasher.save(tmp_path / "m.star")
    loaded = starshl.load(tmp_path / "m.star")
    assert isinstance(loaded.support_samples_, csr_array)
    assert np.array_equal(loaded.decision_function(rows), hasher.decision_function(rows))
    assert (tmp_path / "m.star").stat().st_size < X.nbytes / 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("indices", 400), ("indices", -1), ("indptr", 10**6), ("indptr", -1), ("data", np.nan)],
)
def test_a_file_whose_sparse_rows_are_damaged_is_refused(name, value):
    X, y = like_tf_idf()
    header, arrays = StarSHL(4, random_state=0).fit(csr_array(X), y).pack()
    damaged = arrays[f"support.{name}"].copy()
    damaged[-1] = value
    with pytest.raises(BundleFormatError, match="its support_samples_ does not match"):
        StarSHL.unpack(header, arrays | {f"support.{name}": damaged})


@pytest.mark.parametrize("kernels", ["graph", [GraphGaussian()], [lambda a, b: float(a @ b)], "precomputed"])
def test_kernels_that_need_dense_rows_refuse_sparse_ones_with_a_way_out(kernels):
    X, y = like_tf_idf()
    with pytest.raises(TypeError, match=r"TruncatedSVD.*toarray"):
        StarSHL(4, kernels=kernels).fit(csr_array(X), y)


def test_compress_refuses_sparse_rows_with_a_way_out():
    X, y = like_tf_idf()
    with pytest.raises(ValueError, match="TruncatedSVD"):
        StarSHL(4, random_state=0).fit(csr_array(X), y).compress()
    with pytest.raises(ValueError, match=r"dense rows.*toarray"):
        StarSHL(4, random_state=0).fit(X, y).compress(X=csr_array(X))


def test_fitting_leaves_the_given_matrix_as_it_was():
    X, y = like_tf_idf()
    rows = csr_array(X)
    rows.data[3] = 0.0  # an explicit zero, which must not be taken out
    data, indices = rows.data.copy(), rows.indices.copy()
    StarSHL(4, random_state=0).fit(rows, y)
    assert np.array_equal(rows.data, data)
    assert np.array_equal(rows.indices, indices)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_sparse_rows_have_distance_zero(dtype):
    X, _ = like_tf_idf(40)
    rows = csr_array((1e3 + X).astype(dtype))  # far from zero, so that norms cancel
    distances = PairTable(rows, rows).squared_distances
    assert np.all(np.diag(distances) == 0.0)
    expected = PairTable(rows.toarray(), rows.toarray()).squared_distances
    assert np.allclose(distances, expected, rtol=1e-5 if dtype == np.float64 else 0.05, atol=1e-12)


def test_distinct_sparse_rows_and_their_median_distance_are_those_of_dense_rows():
    X, _ = like_tf_idf(60)
    X = np.concatenate([X, X[:20], np.zeros((2, X.shape[1]))])
    rows, number = distinct_rows(csr_array(X))
    assert rows.shape[0] == 61
    assert np.array_equal(rows.toarray()[number], X)
    assert np.isclose(median_distance(csr_array(X)), median_distance(X))
