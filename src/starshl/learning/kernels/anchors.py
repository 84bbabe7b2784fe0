"""Anchors: a few rows that represent all of them, and Gaussian features measured from them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_random_state

from ..._common.lazy import library
from ..._common.result_cache import cached, can_cache
from ..._common.threads import single_threaded_blas, tiles
from ..._common.validation import Seed, check_choice, check_integer, check_number
from ..linalg import fill_by_tiles, nearest_rows, squared_distances

sklearn_cluster = library("sklearn.cluster")
AnchorsLike: TypeAlias = Literal["random", "kmeans"] | ArrayLike
"""What users pass as anchors: how to choose them, or the rows themselves."""
# Anchors need to cover the data, not to be optimal: further iterations barely move them.
_KMEANS_ITERATIONS = 10
# Enough rows to choose starting centers from; more would cost time without better coverage.
_SEED_ROWS_PER_CENTER = 20


def choose_anchors(
    X: np.ndarray, anchors: AnchorsLike = "random", n_anchors: int = 300, random_state: Seed = None
) -> np.ndarray:
    """Return at most n_anchors distinct anchors, shape (n_anchors, n_features).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    anchors : {"random", "kmeans"} or array of shape (n, n_features), default="random"
        Rows of X drawn without replacement, k-means centers, or given.
    n_anchors : int, default=300
        With no more rows than that, every row is an anchor. Ignored for given anchors.
    random_state : int, RandomState or None, default=None
    """
    if not isinstance(anchors, str):
        return _check_given(anchors, X)
    check_choice(anchors, "anchors", ("random", "kmeans"))
    n_anchors = check_integer(n_anchors, "n_anchors", low=1)
    rng = check_random_state(random_state)
    if len(X) <= n_anchors:
        return _distinct(X)
    if anchors == "kmeans":
        return _distinct(kmeans_centers(X, n_anchors, rng))
    return _distinct(X[np.sort(rng.choice(len(X), n_anchors, replace=False))])


def _check_given(anchors: ArrayLike, X: np.ndarray) -> np.ndarray:
    anchors = np.asarray(anchors)
    if anchors.ndim != 2 or anchors.shape[1] != X.shape[1] or len(anchors) == 0:
        raise ValueError(
            f"anchors has shape {anchors.shape}; it must be (n_anchors, {X.shape[1]}), one row per anchor. "
            "Give such an array, 'random' or 'kmeans'."
        )
    if anchors.dtype.kind not in "biuf" or not np.isfinite(anchors).all():
        raise ValueError("anchors has entries that are not finite numbers. Give rows like those of X.")
    return _distinct(anchors.astype(X.dtype))


def _distinct(rows: np.ndarray) -> np.ndarray:
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def kmeans_centers(
    X: np.ndarray, n_centers: int, rng: np.random.RandomState, max_iter: int = _KMEANS_ITERATIONS
) -> np.ndarray:
    """Return k-means centers after a few of Lloyd's iterations, started by k-means++.

    Random starting rows would leave dense regions crowded with centers and others without any. A center that is
    nearest to no row stays where it is. O(max_iter n_samples n_centers n_features).
    """
    centers = _starting_rows(X, n_centers, rng)
    owners = None
    for _ in range(max_iter):
        nearest = nearest_rows(X, centers, 1)[:, 0]
        if owners is not None and np.array_equal(nearest, owners):
            break
        owners = nearest
        order = np.argsort(owners, kind="stable")
        groups, starts, counts = np.unique(owners[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(X[order], starts, axis=0, dtype=np.float64)
        centers = centers.copy()
        centers[groups] = sums / counts[:, None]
    return centers


def _starting_rows(X: np.ndarray, n_rows: int, rng: np.random.RandomState) -> np.ndarray:
    """Return rows of X that k-means++ picks, from a random sample where there are many."""
    n_candidates = _SEED_ROWS_PER_CENTER * n_rows
    if len(X) > n_candidates:
        X = X[np.sort(rng.choice(len(X), n_candidates, replace=False))]
    # Relative to the mean, so that rows far from zero lose no digits; the choice depends on distances alone.
    with single_threaded_blas():
        _, chosen = sklearn_cluster.kmeans_plusplus(X - X.mean(axis=0), n_rows, random_state=rng)
    return X[np.sort(chosen)]


def gaussian_scale(sigma: float | Literal["rms", "half_rms"], X: np.ndarray, anchors: np.ndarray) -> float:
    r"""Return :math:`2\sigma^2`, what squared distances are divided by in a Gaussian of width sigma.

    Parameters
    ----------
    sigma : float, "rms" or "half_rms"
        "rms" is the root mean squared distance between rows and anchors, "half_rms" one half of that.
    X : array of shape (n_samples, n_features)
    anchors : array of shape (n_anchors, n_features)
    """
    if not isinstance(sigma, str):
        return 2 * check_number(sigma, "sigma", low=0, strict=True) ** 2
    share = {"rms": 1.0, "half_rms": 0.25}[check_choice(sigma, "sigma", ("rms", "half_rms"))]
    return 2 * share * mean_squared_distance(X, anchors)


def mean_squared_distance(A: np.ndarray, B: np.ndarray) -> float:
    r"""Return the mean of all squared distances between rows of A and of B.

    .. math:: \overline{\|a\|^2} + \overline{\|b\|^2} - 2 \bar a^T \bar b, \qquad O((n_A + n_B) d)

    1 where all rows are equal, so that it can always serve as a bandwidth.
    """
    # With the mean of B as the origin the cross term is zero, and rows far from zero lose no digits.
    origin = B.mean(axis=0, dtype=np.float64)
    mean = sum(_mean_squared_norm(rows, origin) for rows in (A, B))
    return mean if mean > np.finfo(A.dtype).tiny else 1.0


def _mean_squared_norm(rows: np.ndarray, origin: np.ndarray) -> float:
    parts = [float(np.square(rows[tile] - origin).sum()) for tile in tiles(len(rows), 1024)]
    return sum(parts) / len(rows)


def gaussian_features(X: np.ndarray, anchors: np.ndarray, scale: float) -> np.ndarray:
    r"""Return :math:`\exp(-\|x - a\|^2 / scale)`, shape (n_samples, n_anchors)."""

    def of(tile: slice) -> np.ndarray:
        features = squared_distances(X[tile], anchors)
        features *= -1.0 / scale
        return np.exp(features, out=features)

    arguments = (X, anchors, scale)
    return cached("gaussian features", arguments, lambda: fill_by_tiles(len(X), len(anchors), X.dtype, of))


def gaussian_expansion(
    X: np.ndarray, anchors: np.ndarray, scale: float, coefficients: np.ndarray, intercept: np.ndarray
) -> np.ndarray:
    r"""Return :math:`\sum_a c_{ba} \exp(-\|x - a\|^2 / scale) + \beta_b`, shape (n_samples, n_bits).

    Kernel values are kept for one tile of rows at a time, so memory does not grow with n_samples x n_anchors.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    anchors : array of shape (n_anchors, n_features)
    scale : float
    coefficients : array of shape (n_bits, n_anchors)
    intercept : array of shape (n_bits,)
    """
    columns = np.asarray(coefficients, dtype=X.dtype).T
    # Tile by tile they are the same numbers.
    at_once = can_cache(len(X) * len(anchors) * X.itemsize)
    features = gaussian_features(X, anchors, scale) if at_once else None

    def of(tile: slice) -> np.ndarray:
        own = gaussian_features(X[tile], anchors, scale) if features is None else features[tile]
        return own @ columns + intercept.astype(X.dtype)

    return fill_by_tiles(len(X), columns.shape[1], X.dtype, of)
