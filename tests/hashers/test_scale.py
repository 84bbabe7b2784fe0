"""Rows of any usual scale give codes, and rows whose squares leave the range of their numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from starshl import HybridHasher, NeighborGraph, StarRidge
from starshl.hashers.baselines import LAMP, AnchorGraphHash, CGHash, PCAHash
from starshl.hashers.catalog import Configuration, configurations

ALL = list(configurations())
OUT_OF_RANGE = [
    (np.float64, 1e-160),
    (np.float64, 1e200),
    (np.float32, 1e-25),
    (np.float32, 1e25),
]


def _digits(n_rows: int, dtype: type = np.float64, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return (X[:n_rows] * scale).astype(dtype), y[:n_rows]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dtype", "scale"), OUT_OF_RANGE)
@pytest.mark.parametrize("configuration", ALL, ids=lambda configuration: configuration.name)
def test_every_method_refuses_rows_whose_squares_leave_their_range(
    configuration: Configuration, dtype: type, scale: float
) -> None:
    X, y = _digits(60, dtype, scale)
    with pytest.raises(ValueError, match="leaves the range of"):
        configuration.make(8).fit(X, y)


@pytest.mark.parametrize(("dtype", "scale"), OUT_OF_RANGE)
def test_a_hybrid_and_sparse_rows_are_refused_alike(dtype: type, scale: float) -> None:
    X, y = _digits(60, dtype, scale)
    with pytest.raises(ValueError, match="leaves the range of"):
        HybridHasher(8).fit(X, y)
    with pytest.raises(ValueError, match="leaves the range of"):
        PCAHash(8).fit(csr_array(X))


def test_a_fit_whose_squares_overflow_in_their_sum_alone_is_refused() -> None:
    X = np.full((1000, 1000), 3e17, dtype=np.float32)
    X[0] = 0
    with pytest.raises(ValueError, match="leaves the range of float32"):
        PCAHash(1).fit(X)


def test_small_rows_to_be_hashed_are_no_error() -> None:
    X, y = _digits(200)
    hasher = StarRidge(8, random_state=0).fit(X, y)
    assert len(hasher.encode(np.full((1, 64), 1e-200))) == 1
    with pytest.raises(ValueError, match="leaves the range of"):
        hasher.encode(np.full((1, 64), 1e200))


@pytest.mark.parametrize(
    "hasher",
    [
        AnchorGraphHash(8, random_state=0),
        AnchorGraphHash(8, variant="two_layers", random_state=0),
        LAMP(8, random_state=0),
        CGHash(8, max_triplets=500, n_starts=20, random_state=0),
    ],
    ids=str,
)
def test_whole_numbers_give_the_same_codes_in_single_precision(
    hasher: AnchorGraphHash | LAMP | CGHash,
) -> None:
    X, y = _digits(900)
    double = hasher.fit(X[:400], y[:400]).transform(X[400:])
    single = hasher.fit(X[:400].astype(np.float32), y[:400]).transform(X[400:].astype(np.float32))
    assert np.mean(single != double) < 0.002


@pytest.mark.parametrize(("dtype", "scale"), OUT_OF_RANGE)
def test_neighbors_do_not_depend_on_the_scale(dtype: type, scale: float) -> None:
    graphs = [NeighborGraph.of_rows(_digits(200, dtype, each)[0]).weights.toarray() > 0 for each in (1.0, scale)]
    assert np.mean(graphs[0] == graphs[1]) > 0.999
