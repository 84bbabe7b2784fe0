"""Unit and saturation of a hybrid are quantiles of distances between neighbors of one class, as counted by hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from starshl import HybridHasher, StarRidge
from starshl.data.features import Impute, Scale
from starshl.hashers import PreparedHasher
from starshl.hashers.hybrid_tuning import Neighborhoods, cosine_distances, vector_distances


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    own = rng.integers(3, size=90)
    return rng.standard_normal((90, 5)) + 2 * own[:, None], own, rng.random(90) < 0.5


def by_hand(rows, own, askable, between, distances):
    """Distances of the ten nearest rows of the class of each row that may be a query."""
    found = []
    for query in np.flatnonzero(askable):
        items = [item for item in range(len(own)) if own[item] == own[query] and item != query]
        items.sort(key=lambda item: between(rows[query], rows[item]))
        found += [distances(query, item) for item in items[:10]]
    return found


def euclidean(a, b):
    return np.linalg.norm(a - b)


def cosine(a, b):
    return 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def test_scale_is_that_of_the_ten_nearest_rows_of_the_same_class(case):
    rows, own, askable = case
    table = np.random.default_rng(1).integers(0, 9, (90, 90)).astype(float)
    found = by_hand(rows, own, askable, euclidean, lambda query, item: table[query, item])
    far, usual = np.quantile(found, [0.9, 0.5])
    neighborhoods = Neighborhoods(rows, own, askable, seed=3)
    assert neighborhoods.scale(lambda queries, items: table[np.ix_(queries, items)]) == (far - usual, far)
    assert neighborhoods.scale(lambda queries, items: table[np.ix_(queries, items)], least=50) == (50, far)


def test_scales_of_vectors_are_those_of_both_metrics(case):
    rows, own, askable = case
    expected = []
    for between in (euclidean, cosine):
        found = by_hand(rows, own, askable, between, lambda query, item: between(rows[query], rows[item]))  # noqa: B023
        expected.append([np.quantile(found, 0.9) - np.quantile(found, 0.5), np.quantile(found, 0.9)])
    for each in (rows, csr_array(rows)):
        assert np.allclose(Neighborhoods(each, own, askable, seed=0).vector_scales(), expected)


def test_distances_of_sparse_rows_are_those_of_dense_ones():
    rows = np.random.default_rng(0).standard_normal((20, 6))
    rows[4] = 0
    queries, items = np.arange(5), np.arange(3, 20)
    for distances in (vector_distances, cosine_distances):
        assert np.allclose(distances(csr_array(rows), queries, items), distances(rows, queries, items))
    assert np.allclose(cosine_distances(rows, queries, items)[4], 1)


def test_rows_that_are_alone_in_their_class_have_neighbors_of_other_classes():
    rows = np.arange(6.0)[:, None] ** 2
    unit, saturation = Neighborhoods(rows, np.arange(6), np.ones(6, bool), seed=0).vector_scales()[0]
    assert 0 < unit < saturation <= 25


def test_equal_rows_and_single_rows_have_a_scale():
    for n_rows in (1, 2, 12):
        rows, own = np.zeros((n_rows, 2)), np.zeros(n_rows, int)
        neighborhoods = Neighborhoods(rows, own, np.ones(n_rows, bool), seed=0)
        assert neighborhoods.scale(lambda queries, items: np.zeros((len(queries), len(items)))) == (1.0, 0.0)
        assert (neighborhoods.vector_scales()[:, 0] > 0).all()


def hundredths(X):
    return X / 100


def test_rows_behind_steps_are_measured_as_collections_keep_them():
    X, y = load_digits(return_X_y=True)
    ridge = StarRidge(kernels="scaled", random_state=0)
    raw = HybridHasher(20, class_hasher=ridge, random_state=0).fit(X[:300], y[:300])
    prepared = PreparedHasher([FunctionTransformer(hundredths)], clone(raw)).fit(X[:300], y[:300])
    ours, theirs = (each.vector_rule("euclidean") for each in (prepared, raw))
    assert ours.saturation == pytest.approx(theirs.saturation)
    assert ours.unit == pytest.approx(theirs.unit)
    assert prepared.hasher_.score_rule == raw.score_rule


@pytest.mark.parametrize(
    "kind", [np.ndarray.tolist, lambda X: X.astype(object), lambda X: pytest.importorskip("pandas").DataFrame(X)]
)
def test_rows_of_any_type_behind_steps_are_measured_in_their_own_units(kind):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] * np.logspace(-3, 3, 64), y[:200]
    hasher = PreparedHasher([StandardScaler()], HybridHasher(20, random_state=0))
    ours, theirs = (clone(hasher).fit(rows, y).vector_rule("euclidean") for rows in (kind(X), X))
    assert ours == theirs
    assert ours.unit > 100


def test_rows_with_missing_numbers_are_not_measured():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] * 100, y[:200]
    X[::7, 3] = np.nan
    hasher = PreparedHasher([Impute(), Scale()], HybridHasher(20, random_state=0)).fit(X, y)
    assert 100 < hasher.vector_rule("euclidean").saturation < 10_000
    X[:, 4] = np.nan
    assert hasher.fit(X, y).vector_rule("euclidean").saturation < 100


def test_hashers_without_both_parts_have_no_rule_for_vectors():
    X, y = load_digits(return_X_y=True)
    assert StarRidge(8, kernels="scaled").fit(X[:100], y[:100]).vector_rule("cosine") is None
