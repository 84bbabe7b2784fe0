"""How unlike all training rows a row is: what the classes leave unexplained, and the distance to the nearest rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from .._threads import run_all, single_threaded_blas, tiles
from .._types import Rows
from ..kernels.mixture import MixtureTo
from .expansion import Expansion
from .samples import Precomputed, Samples

__all__ = [
    "NoveltyRule",
    "distances_to_support",
    "nearest_distances",
    "unexplained",
    "with_further_rows",
    "without_novelty",
]

_TILE = 256  # rows that meet the support rows together


@dataclass(frozen=True, slots=True)
class NoveltyRule:
    r"""A measure of novelty and what it is on training rows that are each compared with the other ones.

    .. math:: (1 - w) \frac{u(x) - u_0}{u_1} + w\, \frac{d_k(x) - d_0}{d_1}

    with u of :func:`unexplained`, and :math:`d_k` the distance to the k-th nearest support row, both in units of what
    they are on training rows.

    Parameters
    ----------
    weight : w, from 0 to 1
    n_neighbors : k
    units : array of shape (2, 2): u_0, u_1 and d_0, d_1
    calibration : sorted array of shape (n,), the measure of training rows
    """

    weight: float
    n_neighbors: int
    units: np.ndarray
    calibration: np.ndarray

    @classmethod
    def of(cls, hasher: Any) -> NoveltyRule:
        """Return the rule that a fitted hasher learned."""
        return cls(
            hasher.novelty_weight_, hasher.novelty_neighbors_, hasher.novelty_units_, hasher.novelty_calibration_
        )

    def learned(self) -> dict[str, Any]:
        """Return the same by the names of learned attributes."""
        return {
            "novelty_weight_": self.weight,
            "novelty_neighbors_": self.n_neighbors,
            "novelty_units_": self.units,
            "novelty_calibration_": self.calibration,
        }

    def measure(self, unexplained: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the measure of rows; large is unlike all training rows."""
        (u_center, u_scale), (d_center, d_scale) = self.units
        return (1 - self.weight) * (unexplained - u_center) / u_scale + self.weight * (distances - d_center) / d_scale

    def shares(self, samples: Samples, expansion: Expansion) -> np.ndarray:
        """Return for each sample the share of training rows that look more familiar, at least 0 and below 1.

        ``expansion`` gives class scores, with kernel weights that all of them share. With n training rows, p = 1 -
        share is a conformal p-value: a new row of a known class has p <= a with a probability of at most a.
        """
        shares = np.zeros(len(samples))
        if len(self.calibration) == 0:
            return shares

        def fill(rows: slice) -> None:
            values, distances = distances_to_support(samples.queries(np.arange(rows.start, rows.stop)), expansion)
            scores = values @ expansion.coefficients.T + expansion.intercept
            nearest = nearest_distances(distances, (self.n_neighbors,))[:, 0]
            measured = self.measure(unexplained(scores), nearest)
            shares[rows] = np.searchsorted(self.calibration, measured) / (len(self.calibration) + 1)

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(len(samples), _TILE)])
        return shares


def with_further_rows(functions: Expansion, rows: np.ndarray, kept: Rows) -> Expansion:
    """Return functions whose support rows are joined by others; coefficients are those of the first ones only."""
    support = np.concatenate([functions.support, rows])
    both = (functions.kept, kept)
    return replace(functions, support=support, kept=vstack(both, "csr") if issparse(kept) else np.concatenate(both))


def without_novelty(state: dict[str, Any]) -> dict[str, Any]:
    """Return learned attributes without those about novelty, for a hasher that loses its training rows."""
    return {name: value for name, value in state.items() if not name.startswith("novelty_")}


def unexplained(scores: np.ndarray) -> np.ndarray:
    r"""Return :math:`|h - e|` for class scores h, where e has a one in the place of the largest and zeros elsewhere.

    Examples
    --------
    >>> unexplained(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [0.0, 0.707]
    """
    rest = np.array(scores, dtype=np.float64)
    rest[np.arange(len(rest)), rest.argmax(axis=1)] -= 1.0
    return np.sqrt(np.square(rest).sum(axis=1))


def distances_to_support(samples: Samples, expansion: Expansion) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the kernel mixture between samples and support rows, and the distances that it means.

    .. math:: |\phi(x) - \phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z).

    Of precomputed kernels, k(x, x) is unknown. They are taken to be normalized, and -k stands for the distance, which
    then gives the same order.
    """
    weights = expansion.mean_weights
    if isinstance(samples, Precomputed):
        values = np.tensordot(weights, samples.values[:, :, expansion.support].astype(np.float64), 1)
        return values, -values
    values = MixtureTo(expansion.kernels, weights, expansion.kept)(samples.values).astype(np.float64)
    own = weights @ samples.diagonals(expansion.kernels)
    others = weights @ type(samples)(expansion.kept).diagonals(expansion.kernels)
    return values, np.sqrt(np.maximum(own[:, None] + others - 2.0 * values, 0.0))


def nearest_distances(distances: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Return the k-th smallest distance of each row, for each k of ``counts``."""
    places = [count - 1 for count in counts]
    return np.partition(distances, places, axis=1)[:, places]
