"""StarSHL keeps to Algorithm 1 where classes overlap, below and above the number of rows that are sampled."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from starshl import StarSHL
from starshl.learning.solvers import proposals

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from plain_star_shl import Model, fit, objective, paper_grams

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# In each bit one small class stands alone. A function that was fitted to a sample answers for the large classes on the
# other rows, and these rows outvote the sample: the codeword bit of the small class flips.
ONE_AGAINST_THE_OTHERS = np.array([[1, 1, -1], [1, -1, -1], [-1, -1, -1], [1, -1, 1]])


def overlapping_classes(n_rows):
    """Rows that tell next to nothing about their classes, which are of unequal size."""
    rng = np.random.default_rng(0)
    y = rng.choice(4, n_rows, p=[0.5, 0.3, 0.12, 0.08])
    return rng.standard_normal((n_rows, 40)) + 0.2 * rng.standard_normal((4, 40))[y], y


@pytest.fixture(autouse=True)
def rows_are_sampled_above_500(monkeypatch):
    """A third of the solver's numbers, because the plain implementation takes a while on more than 1,500 rows."""
    monkeypatch.setattr(proposals, "SAMPLE_ABOVE_ROWS", 500)
    monkeypatch.setattr(proposals, "MIN_JOINING_LIMIT", 1333)
    monkeypatch.setattr(proposals, "SAMPLE_SIZES", (250, 1333))


@pytest.mark.parametrize("n_rows", [480, 700])
def test_overlapping_classes_keep_their_codewords_with_any_number_of_rows(n_rows):
    X, y = overlapping_classes(n_rows)
    weights = np.random.default_rng(1).random((3, 11))
    weights /= weights.sum(axis=1, keepdims=True)
    everyone = np.ones(n_rows, dtype=bool)
    plain = Model(paper_grams(X, X), y, everyone, ONE_AGAINST_THE_OTHERS, weights, C=1000.0, svm_tol=1e-6)
    fit(plain, tol=1e-3)
    ours = StarSHL.paper(3, codewords=ONE_AGAINST_THE_OTHERS, kernel_weights=weights)
    ours.set_params(tol=1e-3, svm_tol=1e-5, max_iter=60).fit(X, y)
    assert ours.n_flipped_ == 0
    assert np.array_equal(ours.codewords_, plain.codewords)
    # Both stop while kernel weights still move by 1e-3 in a sweep, so scores differ by a little more than that.
    assert np.abs(ours.decision_function(X) - plain.f).max() < 0.01
    assert ours.objective_history_[-1] == pytest.approx(objective(plain), rel=1e-3)


def pictures(name, n_rows):
    folder = os.environ.get("STARSHL_DATA")
    path = Path(folder or ".") / f"{name}.npz"
    if folder is None or not path.is_file():
        pytest.skip(f"STARSHL_DATA names no folder with {name}.npz")
    with np.load(path, allow_pickle=False) as data:
        X, y = data["X"], data["y"]
        if "top10" in data:
            keep = np.isin(y, data["top10"])
            X, y = X[keep], np.unique(y[keep], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return (X[order] / 255.0).astype(np.float32), y[order]


@pytest.mark.filterwarnings("ignore:Some rows of codewords", "ignore:10 codewords do not fit")
@pytest.mark.parametrize("name", ["pascal07_gray32", "cifar10_gray"])
def test_pictures_keep_their_codewords_as_in_the_plain_implementation(name):
    X, y = pictures(name, 700)
    rng = np.random.default_rng(2)
    codewords = np.where(rng.random((10, 3)) < 0.5, -1, 1)
    weights = rng.random((3, 11))
    weights /= weights.sum(axis=1, keepdims=True)
    ours = StarSHL.paper(3, codewords=codewords, kernel_weights=weights).fit(X, y)
    wide = X.astype(np.float64)
    plain = Model(paper_grams(wide, wide), y, np.ones(700, dtype=bool), codewords, weights, C=1000.0, svm_tol=1e-3)
    fit(plain, tol=0.05)
    assert np.array_equal(plain.codewords, codewords)
    assert np.array_equal(ours.codewords_, plain.codewords)
    # Kernel weights may still move by 0.05 in a sweep on both sides.
    scores = ours.decision_function(X)
    assert np.mean(np.sign(scores) == np.sign(plain.f)) > 0.999
    assert np.abs(scores - plain.f).mean() < 0.05
