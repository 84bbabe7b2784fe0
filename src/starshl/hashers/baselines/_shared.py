"""What several baselines share: rows centered and reduced to principal components, and weighted Hamming distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from ..._common.threads import single_threaded_blas
from ...codes.binary import BinaryCodes
from ...learning.linalg import principal_directions, project


@dataclass(frozen=True, slots=True)
class CenteredRows:
    """Training rows as ``axes @ (x - mean)``, in float64."""

    rows: np.ndarray
    axes: np.ndarray
    mean: np.ndarray

    def in_features(
        self, directions: np.ndarray, offsets: np.ndarray | float, dtype: DTypeLike
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return components and intercept that give ``directions @ row + offsets`` from the features themselves."""
        with single_threaded_blas():
            components = directions @ self.axes
            return components.astype(dtype), (offsets - components @ self.mean).astype(dtype)


def centered_rows(X: np.ndarray, n_components: int | None) -> CenteredRows:
    """Center X; if it has more than ``n_components`` features, keep that many principal components."""
    if n_components is not None and X.shape[1] > n_components:
        return principal_rows(X, n_components)
    mean = X.mean(axis=0, dtype=np.float64)
    return CenteredRows(X - mean, np.eye(X.shape[1]), mean)


def principal_rows(X: np.ndarray, n_components: int) -> CenteredRows:
    """Center X and keep its leading principal components, fewer than asked for if the rank is lower."""
    mean = X.mean(axis=0, dtype=np.float64)
    axes, _ = principal_directions(X, n_components)
    with single_threaded_blas():
        intercept = -(axes @ mean)
    return CenteredRows(project(X.astype(np.float64), axes, intercept), axes, mean)


class WeightedBits:
    """Adds the distance of the paper to a hasher that learns ``bit_weights_``."""

    bit_weights_: np.ndarray
    n_bits_: int

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"bit_weights_": (self.n_bits_,)}

    def weighted_distances(self, queries: BinaryCodes, items: BinaryCodes) -> np.ndarray:
        r"""Return :math:`\sum_b w_b [q_b \ne z_b]` with w the ``bit_weights_``, shape (n_queries, n_items).

        The paper ranks by this distance. An index ranks by the plain one: take its candidates and sort them by this.

        Parameters
        ----------
        queries : codes from ``encode``
        items : codes from ``encode_database``
        """
        if not queries.n_bits == items.n_bits == len(self.bit_weights_):
            raise ValueError(
                f"The codes have {queries.n_bits} and {items.n_bits} bits; this hasher makes codes of "
                f"{len(self.bit_weights_)}. Encode both sides with it."
            )
        asked, stored = (codes.to_signs() > 0 for codes in (queries, items))
        # Two sums of terms that are never negative: equal codes are at distance zero exactly.
        only_asked = project(asked * self.bit_weights_, ~stored)
        return only_asked + project(~asked * self.bit_weights_, stored)
