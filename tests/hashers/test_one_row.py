"""What is computed once for a fitted hasher, and what skips scikit-learn's checks, changes no answer."""

import numpy as np
import pytest

from starshl import HybridHasher, StarRidge, StarSHL
from starshl._common.validation import check_rows
from starshl.hashers.baselines import ITQ
from starshl.learning.kernels import Gaussian, NormalizedLinear
from starshl.learning.kernels.expansion import BitExpansion, MixtureExpansion

HASHERS = {
    "ITQ": lambda: ITQ(8, random_state=0),
    "StarRidge": lambda: StarRidge(16, random_state=0),
    "StarSHL": lambda: StarSHL(16, random_state=0),
    "HybridHasher": lambda: HybridHasher(24, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    return 3 * rng.standard_normal((3, 30))[labels] + rng.standard_normal((90, 30)), labels


@pytest.fixture(scope="module", params=HASHERS)
def fitted(request, data):
    return HASHERS[request.param]().fit(*data)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rows_that_need_no_conversion_are_those_that_scikit_learn_makes(fitted, data, precision):
    X = data[0].astype(precision)
    checked = check_rows(fitted, X, fitting=False)
    assert checked is X
    others = {
        "a list": X.astype(float).tolist(),
        "in columns": np.asfortranarray(X),
        "every other column of a wider matrix": np.repeat(X, 2, axis=1)[:, ::2],
        "of another byte order": X.astype(X.dtype.newbyteorder(">")),
        "a subclass": np.ma.array(X),
    }
    for what, other in others.items():
        rows = check_rows(fitted, other, fitting=False)
        assert np.array_equal(rows, X), what
        assert rows.flags.c_contiguous, what
        assert rows.dtype in (np.float32, np.float64), what
    with pytest.raises(TypeError, match=r"np\.matrix"):
        check_rows(fitted, X.view(np.matrix), fitting=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[:, :-1],
        lambda X: X[:0],
        lambda X: X[0],
        lambda X: X[None],
        lambda X: np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X),
        lambda X: X * 1e200,
        lambda X: X.astype(complex),
    ],
    ids=["narrow", "empty", "one axis", "three axes", "NaN", "too large", "complex"],
)
def test_bad_rows_are_refused_as_before(fitted, data, change):
    with pytest.raises(ValueError, match=r"feature|sample|array|NaN|Rescale|[Cc]omplex"):
        fitted.encode(change(data[0]))


def test_arrays_without_the_names_of_the_fit_still_warn(data):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(data[0], columns=[f"c{j}" for j in range(30)])
    hasher = ITQ(8, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        hasher.encode(data[0])


def test_another_fit_forgets_what_was_computed_for_the_first(data):
    X, labels = data
    for make in HASHERS.values():
        hasher = make().fit(X, labels)
        hasher.encode(X)
        hasher.fit(X[::-1] * 2 + 1, (labels + 1) % 3)
        fresh = make().fit(X[::-1] * 2 + 1, (labels + 1) % 3)
        assert hasher.encode(X) == fresh.encode(X)
        assert hasher.decision_function(X).tobytes() == fresh.decision_function(X).tobytes()


def test_another_learned_attribute_counts_at_once(data):
    X, labels = data
    hasher = StarRidge(16, random_state=0).fit(X, labels)
    before = hasher.class_scores(X)
    hasher.dual_coef_ = 2 * hasher.dual_coef_
    hasher.intercept_ = 2 * hasher.intercept_
    assert hasher.class_scores(X) == pytest.approx(2 * before)
    hasher.sharpness_ = 3.0
    assert hasher.words.sharpness == 3.0


@pytest.mark.parametrize("n_support", [5, 512, 513, 1100])
@pytest.mark.parametrize("shared", [True, False])
def test_an_expansion_called_again_is_a_new_one_and_the_plain_sum(n_support, shared):
    """On both sides of a piece of support rows, in both precisions, and where rows are too uneven for float32."""
    rng = np.random.default_rng(n_support)
    kernels = [Gaussian(2.0), NormalizedLinear()]
    support, coefficients = rng.standard_normal((n_support, 6)), rng.standard_normal((4, n_support))
    weights = rng.uniform(0.2, 1.0, 2) if shared else rng.uniform(0.2, 1.0, (4, 2))
    expansion_class = MixtureExpansion if shared else BitExpansion
    kept = expansion_class(kernels, support, weights, coefficients)
    uneven = rng.standard_normal((20, 6)) * np.logspace(-4, 4, 20)[:, None]
    for rows in (rng.standard_normal((20, 6)), uneven):
        grams = np.array([kernel(rows, support) for kernel in kernels])
        expected = np.einsum("bm,mns,bs->nb", np.broadcast_to(weights, (4, 2)), grams, coefficients)
        for given in (rows, rows.astype(np.float32), rows[:1]):
            found = kept(given)
            assert found.tobytes() == expansion_class(kernels, support, weights, coefficients)(given).tobytes()
            assert found.dtype == given.dtype
            error = 1e-9 if given.dtype == np.float64 else 2e-4
            assert np.abs(found - expected[: len(given)]).max() <= error * np.abs(coefficients).sum()
