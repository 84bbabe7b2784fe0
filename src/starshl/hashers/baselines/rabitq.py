"""RaBitQ: signs after a random rotation, with distances estimated from a query in full precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_rows
from ...codes.binary import BinaryCodes
from ...codes.codewords import hadamard_matrix
from ...exceptions import InputError
from ...learning.linalg import fill_by_tiles, project, random_rotation
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts, Variant


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What :meth:`RaBitQ.sketch` keeps of each row: its code and two numbers.

    Parameters
    ----------
    codes : BinaryCodes
    scales : array of shape (n_items,)
        Factor that turns the product of code and query into an estimate of the inner product.
    squared_norms : array of shape (n_items,)
        Squared distance of each row from the center.
    """

    codes: BinaryCodes
    scales: np.ndarray
    squared_norms: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)


class RaBitQ(LinearHasher):
    r"""Rotate centered rows at random and take signs; estimate distances to a query that keeps its full precision.

    With :math:`z = R(x - m)`, its code :math:`c = \mathrm{sign}(z)` and a query :math:`u = R(q - m)`,

    .. math:: \langle x - m, q - m\rangle \approx \frac{\|x - m\|^2}{\|z\|_1} \sum_b c_b u_b

    (Gao and Long 2024). The estimate is unbiased over random rotations, and its error falls like
    :math:`1/\sqrt{n\_bits}`. It needs two numbers per row in addition to the code (:meth:`sketch`), so it does not
    belong in a table of Hamming distances: ``benchmarks/rabitq_table.py`` compares both rankings at full length, where
    the method is meant to be used.

    Hamming distances of these codes, above all of fewer bits than features, are those of super-bit LSH
    (``LSHash(variant="super_bit")``).

    Parameters
    ----------
    n_bits : int or "all", default="all"
        Rotated coordinates to keep. "all" is n_features, or for "hadamard" the next power of two.
    variant : {"dense", "hadamard"}, default="dense"
        A uniformly random rotation, or random sign flips and a Walsh-Hadamard matrix over features padded to a power
        of two.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    mean_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import RaBitQ
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = RaBitQ(random_state=0).fit(X[:1000])
    >>> items = hasher.sketch(X[:1000])
    >>> nearest = hasher.asymmetric_distances(X[1000:], items).argmin(axis=1)
    >>> bool((y[nearest] == y[1000:]).mean() > 0.9)  # the nearest row shows the same digit
    True
    """

    facts = Facts(
        paper="Gao, Long: RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound",
        year=2024,
        labels="ignored",
        cost="features^3",
        max_bits="n_features",
        full_length=True,
    )
    variants = (Variant("RaBitQ Hadamard", {"variant": "hadamard"}, {"cost": "n x features + features^2"}),)

    def __init__(
        self,
        n_bits: int | Literal["all"] = "all",
        *,
        variant: Literal["dense", "hadamard"] = "dense",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits  # type: ignore[assignment]  # fit turns "all" into a number, n_bits_
        self.variant = variant
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> RaBitQ:
        """Draw the rotation; y is ignored."""
        variant = check_choice(self.variant, "variant", ("dense", "hadamard"))
        everything = isinstance(self.n_bits, str) and self.n_bits == "all"
        n_bits = None if everything else check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        n_features = X.shape[1]
        limit = n_features if variant == "dense" else 2 ** int(n_features - 1).bit_length()
        if n_bits is not None and n_bits > limit:
            raise InputError(
                "{parameter} is {value}",
                "X has {n_features} feature(s), so variant={variant!r} gives at most {most} bits",
                "Lower {parameter}, or use a method without this limit, such as LSHash.",
                parameter="n_bits",
                value=n_bits,
                n_features=n_features,
                variant=variant,
                most=limit,
            )
        rotation = random_rotation(n_features, rng) if variant == "dense" else _flipped_hadamard(limit, n_features, rng)
        components = rotation[:n_bits]
        mean = X.mean(axis=0, dtype=np.float64)
        self.components_ = components.astype(X.dtype)
        self.intercept_ = -project(components, mean[None])[:, 0].astype(X.dtype)
        self.mean_ = mean.astype(X.dtype)
        self.n_bits_ = len(components)
        return self

    def _learned_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"mean_": (self.n_features_in_,)}

    def sketch(self, X: SamplesLike) -> Sketch:
        """Return codes of X together with what :meth:`asymmetric_distances` needs of each row."""
        rotated = self.decision_function(X)
        squared_norms = self._squared_norms(X)
        lengths = np.abs(rotated).sum(axis=1)
        # A row at the center has the product zero with every query.
        scales = np.divide(squared_norms, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return Sketch(BinaryCodes.from_scores(rotated), scales, squared_norms)

    def asymmetric_products(self, X: SamplesLike, items: Sketch) -> np.ndarray:
        """Return estimated inner products of the centered rows of X with those of a sketch, (n, n_items)."""
        queries = self.decision_function(X)
        if items.codes.n_bits != queries.shape[1]:
            raise ValueError(
                f"The sketch holds codes of {items.codes.n_bits} bits; this hasher writes {queries.shape[1]}. Use the "
                "same hasher to sketch items and to estimate distances."
            )

        def of(tile: slice) -> np.ndarray:
            signs = items.codes[tile].to_signs().astype(queries.dtype)
            return (signs @ queries.T) * items.scales[tile, None]

        return fill_by_tiles(len(items), len(queries), queries.dtype, of).T

    def asymmetric_distances(self, X: SamplesLike, items: Sketch) -> np.ndarray:
        """Return estimated squared Euclidean distances of X to the rows of a sketch, (n, n_items).

        An estimate may be slightly negative; clipping it would tie the nearest rows.
        """
        products = self.asymmetric_products(X, items)
        return self._squared_norms(X)[:, None] + items.squared_norms - 2 * products

    def _squared_norms(self, X: SamplesLike) -> np.ndarray:
        X = check_rows(self, X, fitting=False)
        return np.sum((X - self.mean_.astype(X.dtype, copy=False)) ** 2, axis=1)


def _flipped_hadamard(order: int, n_features: int, rng: np.random.RandomState) -> np.ndarray:
    """Return orthonormal rows of a Hadamard matrix in random order, features flipped at random."""
    rows = hadamard_matrix(order)[rng.permutation(order), :n_features]
    flips = np.where(rng.random_sample(n_features) < 0.5, -1.0, 1.0)
    return rows * flips / np.sqrt(order)
