"""Spherical hashing (Heo, Lee, He, Chang and Yoon 2012): inside or outside hyperspheres."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ..._common.warn import warn_caller
from ...codes.binary import BinaryCodes
from ...learning.linalg import gram, project, squared_distances
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts

_ROWS_IN_A_START = 5  # a mean of a few rows: inside the data, yet different for each bit


class SphericalHash(BaseHasher):
    r"""Learn hyperspheres that each hold half of the rows and that overlap pairwise in a quarter.

    Bit b is +1 where :math:`\|x - c_b\| \le r_b`. Radii are medians of the distances. Centers repel each
    other where two spheres share too many rows and attract each other where they share too few:

    .. math:: c_i \leftarrow c_i + \frac{1}{B} \sum_j \frac{1}{2}\,
              \frac{O_{ij} - N/4}{N/4}\,(c_i - c_j)

    with :math:`O_{ij}` the number of rows in both (Heo et al. 2012), until the mean of
    :math:`|O_{ij} - N/4|` is at most ``tol_mean`` N/4 and the standard deviation of :math:`O_{ij}` at most
    ``tol_std`` N/4. No objective is minimized; ``overlap_history_`` tells how far the first criterion got.

    The method comes with its own distance, :func:`spherical_distances`.

    Parameters
    ----------
    n_bits : int, default=32
    tol_mean : float, default=0.1
    tol_std : float, default=0.15
    max_iter : int, default=100
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the rows that the centers start from: each is the mean of five.

    Attributes
    ----------
    centers_ : array of shape (n_bits, n_features)
    radii_ : array of shape (n_bits,)
    n_iter_ : int
    overlap_history_ : array, mean of :math:`|O_{ij} - N/4| / (N/4)` at every iteration

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SphericalHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SphericalHash(16, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.6  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Heo, Lee, He, Chang, Yoon: Spherical Hashing",
        year=2012,
        labels="ignored",
        cost="iterations x n x n_bits x (features + n_bits)",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        tol_mean: float = 0.1,
        tol_std: float = 0.15,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.tol_mean = tol_mean
        self.tol_std = tol_std
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SphericalHash:
        """Balance the spheres; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        tol_mean = check_number(self.tol_mean, "tol_mean", low=0)
        tol_std = check_number(self.tol_std, "tol_std", low=0)
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        picks = rng.randint(len(X), size=(n_bits, _ROWS_IN_A_START))
        centers = X[picks].mean(axis=1, dtype=np.float64)
        pairs = np.triu_indices(n_bits, 1)
        history = []
        for _ in range(max_iter):
            radii, excess = balance(X, centers)
            mean, deviation = _mean_and_deviation(excess[pairs])
            history.append(mean)
            if mean <= tol_mean and deviation <= tol_std:
                break
            centers = push(centers, excess)
        else:
            radii, _ = balance(X, centers)
            warn_caller(
                f"Overlaps are off by {mean:.3f} on average (tol_mean {tol_mean:g}) with deviation "
                f"{deviation:.3f} (tol_std {tol_std:g}) after {max_iter} iterations; codes are usable. "
                "Raise max_iter or the tolerances.",
                ConvergenceWarning,
            )
        self.centers_ = centers.astype(X.dtype)
        self.radii_ = radii.astype(X.dtype)
        self.overlap_history_ = np.array(history)
        self.n_iter_ = len(history)
        return self

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the radii minus the distances to the centers, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)
        return self.radii_.astype(X.dtype, copy=False) - np.sqrt(squared_distances(X, self.centers_))


def balance(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return radii that hold half of the rows, and how far each overlap is from a quarter, as a share.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    centers : array of shape (n_bits, n_features)

    Returns
    -------
    radii : array of shape (n_bits,)
    excess : array of shape (n_bits, n_bits), ``O_ij / (N / 4) - 1``, zero on the diagonal
    """
    distances = np.sqrt(squared_distances(X, centers))
    half = len(X) // 2
    # Half-way between two rows, so that no row lies on a sphere, where rounding would decide its bit.
    radii = np.partition(distances, [half - 1, half], axis=0)[half - 1 : half + 1].mean(axis=0)
    excess = gram((distances <= radii).astype(np.float64)) / (len(X) / 4) - 1
    np.fill_diagonal(excess, 0.0)
    return radii, excess


def push(centers: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Return the centers after one step of their pairwise forces, which cancel in pairs."""
    strength = 0.5 * excess
    with single_threaded_blas():
        forces = strength.sum(axis=1)[:, None] * centers - strength @ centers
    return centers + forces / len(centers)


def _mean_and_deviation(excess: np.ndarray) -> tuple[float, float]:
    if len(excess) == 0:
        return 0.0, 0.0
    return float(np.abs(excess).mean()), float(excess.std())


def spherical_distances(codes: BinaryCodes, others: BinaryCodes) -> np.ndarray:
    """Return differing bits over common +1 bits, infinite where none is common, shape (n_codes, n_others).

    Two rows inside many common spheres are known to be close, whatever the other bits
    (Heo et al. 2012).

    Examples
    --------
    >>> from starshl import BinaryCodes
    >>> codes = BinaryCodes.from_signs([[1, 1, -1], [1, -1, -1], [-1, -1, 1]])
    >>> spherical_distances(codes[0], codes).tolist()
    [[0.0, 1.0, inf]]
    """
    differing = codes.distances(others).astype(np.float64)
    inside, also_inside = (signs.to_signs() > 0 for signs in (codes, others))
    common = project(inside.astype(np.float64), also_inside.astype(np.float64))
    return np.divide(differing, common, out=np.full_like(differing, np.inf), where=common > 0)
