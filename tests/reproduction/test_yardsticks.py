"""The SVC that predicts by products of matrices, against LIBSVM's own predictions."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from starshl.reproduction import compared_methods
from starshl.reproduction.compared_methods import TiledSVC


def both(X, y, **settings):
    return TiledSVC(**settings).fit(X, y), SVC(**settings).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digits_are_predicted_as_libsvm_predicts_them(dtype, monkeypatch):
    monkeypatch.setattr(compared_methods, "ROWS_AT_ONCE", 100)
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(dtype)
    tiled, plain = both(X[:300], y[:300], C=10.0)
    np.testing.assert_array_equal(tiled.predict(X[300:]), plain.predict(X[300:]))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_classes_that_overlap_and_tie_are_predicted_as_libsvm_predicts_them(n_classes):
    rng = np.random.default_rng(0)
    names = np.array([f"class {name}" for name in "gbfacde"[:n_classes]])
    X, y = rng.normal(size=(400, 3)), names[rng.integers(0, n_classes, 400) ** 2 % n_classes]
    tiled, plain = both(X, y, C=0.5)
    new = rng.normal(size=(2000, 3))
    np.testing.assert_array_equal(tiled.predict(new), plain.predict(new))


def test_sparse_rows_and_other_kernels_are_left_to_libsvm():
    X, y = load_digits(return_X_y=True)
    tiled, plain = both(csr_array(X[:200]), y[:200])
    np.testing.assert_array_equal(tiled.predict(csr_array(X[200:400])), plain.predict(csr_array(X[200:400])))
    tiled, plain = both(X[:200], y[:200], kernel="linear")
    np.testing.assert_array_equal(tiled.predict(X[200:400]), plain.predict(X[200:400]))
