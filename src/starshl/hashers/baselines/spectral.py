"""Spectral hashing: cosines along principal directions (Weiss, Torralba and Fergus 2008)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, check_choice, check_integer, check_rows
from ...learning.linalg import principal_directions, project
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts


class SpectralHash(BaseHasher):
    r"""Threshold the smoothest eigenfunctions of the Laplacian on a box around the data.

    For rows uniform on a box with sides :math:`r_i` along the principal directions, the one-dimensional
    eigenfunctions are :math:`\cos(k\pi (x_i - a_i)/r_i)`, with eigenvalues that grow with :math:`k/r_i`
    (Weiss et al. 2008, Section 3.2). The n_bits smallest are kept; equal ones by direction, then by mode k.
    Rows outside the box continue the cosine. O(n d min(n, d)) to fit.

    Retrieval by label gets worse with many bits: later bits are higher modes, which fold far apart rows
    together.

    Parameters
    ----------
    n_bits : int, default=32
        Any number: a direction can serve many bits.
    ranges : {"minmax", "percentile"}, default="minmax"
        The sides of the box: from smallest to largest projection, or between the percentiles 2.5 and 97.5.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.

    Attributes
    ----------
    components_ : array of shape (n_directions, n_features)
        Principal directions, at most n_bits.
    lows_, sides_ : arrays of shape (n_directions,)
        Start and length of the box along each direction.
    directions_, modes_ : arrays of shape (n_bits,)
        Direction and mode of each bit.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SpectralHash
    >>> X, _ = load_digits(return_X_y=True)
    >>> SpectralHash(4).fit(X).modes_.tolist()
    [1, 1, 1, 1]
    """

    facts = Facts(
        paper="Weiss, Torralba, Fergus: Spectral Hashing",
        year=2008,
        labels="ignored",
        cost="n x features x min(n, features)",
    )

    def __init__(
        self, n_bits: int = 32, *, ranges: Literal["minmax", "percentile"] = "minmax", n_jobs: int | None = None
    ) -> None:
        self.n_bits = n_bits
        self.ranges = ranges
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SpectralHash:
        """Find the box and its smoothest eigenfunctions; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        ranges = check_choice(self.ranges, "ranges", ("minmax", "percentile"))
        X = check_rows(self, X, fitting=True)
        components, _ = principal_directions(X, n_bits)
        if len(components) == 0:
            raise ValueError(
                f"All {len(X)} rows of X are equal, so there is no direction to cut. Give rows that differ."
            )
        projections = project(X, components).astype(np.float64)
        tail = 0.0 if ranges == "minmax" else 2.5
        lows, highs = np.percentile(projections, [tail, 100 - tail], axis=0)
        wide = highs > lows
        self.components_ = components[wide].astype(X.dtype)
        self.lows_, self.sides_ = lows[wide], (highs - lows)[wide]
        self.directions_, self.modes_ = smoothest_modes(self.sides_, n_bits)
        return self

    def _learned_indices(self) -> dict[str, int]:
        return {"directions_": len(self.components_)}

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the eigenfunctions at each row, shape (n_samples, n_bits), within [-1, 1]."""
        X = check_rows(self, X, fitting=False)
        phases = (project(X, self.components_) - self.lows_) * (np.pi / self.sides_)
        return np.cos(phases[:, self.directions_] * self.modes_).astype(X.dtype)


def smoothest_modes(sides: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return directions and modes of the n_bits smallest ``mode / side``; ties by direction, then mode.

    Examples
    --------
    >>> directions, modes = smoothest_modes(np.array([2.0, 1.0]), 3)
    >>> directions.tolist(), modes.tolist()
    ([0, 0, 1], [1, 2, 1])
    """
    directions, modes = np.divmod(np.arange(len(sides) * n_bits), n_bits)
    modes = modes + 1
    order = np.argsort(modes / sides[directions], kind="stable")[:n_bits]
    return directions[order], modes[order]
