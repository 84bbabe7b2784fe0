"""Signs after a random rotation, with distances estimated from one side in full precision (RaBitQ-like)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_random_state

from .._validation import check_choice, check_integer, check_rows
from ..base import LinearHasher, all_or_nothing
from ..codebooks import hadamard_matrix
from ..codes import BinaryCodes, signs_of
from ..facts import Facts, Variant
from ..linalg import fill_by_tiles, project, random_rotation, required_directions

__all__ = ["RandomRotation", "Sketch"]


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What :meth:`RandomRotation.sketch` keeps of each row: its code and two numbers.

    Parameters
    ----------
    codes : BinaryCodes
    scales : array of shape (n_items,)
        What a product of code and query is multiplied with to estimate the inner product.
    squared_norms : array of shape (n_items,)
        Squared distance of each row from the center.
    """

    codes: BinaryCodes
    scales: np.ndarray
    squared_norms: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)


class RandomRotation(LinearHasher):
    r"""Rotate centered rows at random, so that every bit carries as much as any other, and take signs.

    ``projection="pca"`` rotates the n_bits principal components (PCA-RR of Gong and Lazebnik 2011);
    ``"random"`` rotates all features and keeps n_bits coordinates; ``"hadamard"`` does so with random sign
    flips and a Walsh-Hadamard matrix over features padded to a power of two.

    Beside Hamming distances, codes give an asymmetric estimate after Gao and Long (RaBitQ, 2024): with
    :math:`z = R(x - m)`, its code :math:`c = \mathrm{sign}(z)` and a query :math:`u = R(q - m)` in full
    precision,

    .. math:: \langle x - m, q - m\rangle \approx \frac{\|x - m\|^2}{\|z\|_1} \sum_b c_b u_b .

    The estimate is unbiased over random rotations, and its error falls like :math:`1/\sqrt{n\_bits}`: with
    "random" it wants n_bits near n_features, and with a tenth of that it ranks worse than Hamming distance.
    With "pca" it estimates the product of the principal components and takes the rest of both rows as
    orthogonal. It needs two numbers a row beside the code, so it belongs in no table of Hamming distances.

    Parameters
    ----------
    n_bits : int, default=32
        At most the rank of the rows ("pca"), n_features ("random") or the next power of two ("hadamard").
    projection : {"pca", "random", "hadamard"}, default="pca"
    n_jobs : int, default=None
        Threads; None is one, -1 all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    mean_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.baselines import RandomRotation
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = RandomRotation(64, projection="random", random_state=0).fit(X)
    >>> items = hasher.sketch(X[:1000])
    >>> hasher.asymmetric_distances(X[1000:1010], items).shape
    (10, 1000)
    """

    facts = Facts(
        paper="Gao, Long: RaBitQ, Quantizing High-Dimensional Vectors with a Theoretical Error Bound",
        year=2024,
        labels="ignored",
        cost="n x features x min(n, features)",
        max_bits="rank",
    )
    variants = (Variant("RaBitQ", {"projection": "random"}, {"max_bits": "n_features"}),)

    def __init__(self, n_bits=32, *, projection="pca", n_jobs=None, random_state=None):
        self.n_bits = n_bits
        self.projection = projection
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y=None) -> RandomRotation:
        """Draw the rotation; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        projection = check_choice(self.projection, "projection", ("pca", "random", "hadamard"))
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        n_features = X.shape[1]
        if projection == "pca":
            directions, _ = required_directions(X, n_bits, "n_bits")
            components = project(random_rotation(n_bits, rng), directions.T)
        elif projection == "random":
            _check_limit(n_bits, n_features, n_features, projection)
            components = random_rotation(n_features, rng)[:n_bits]
        else:
            order = 2 ** int(n_features - 1).bit_length()
            _check_limit(n_bits, order, n_features, projection)
            components = _flipped_hadamard(order, n_features, rng)[:n_bits]
        mean = X.mean(axis=0, dtype=np.float64)
        self.projection_ = projection
        self.components_ = components.astype(X.dtype)
        self.intercept_ = -project(components, mean[None])[:, 0].astype(X.dtype)
        self.mean_ = mean.astype(X.dtype)
        return self

    def sketch(self, X) -> Sketch:
        """Return codes of X together with what :meth:`asymmetric_distances` needs of each row."""
        rotated = self.decision_function(X)
        squared_norms = self._squared_norms(X)
        rotated_part = np.sum(rotated**2, axis=1) if self.projection_ == "pca" else squared_norms
        lengths = np.abs(rotated).sum(axis=1)
        # A row at the center has the product zero with every query.
        scales = np.divide(rotated_part, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return Sketch(BinaryCodes.from_signs(signs_of(rotated)), scales, squared_norms)

    def asymmetric_products(self, X, items: Sketch) -> np.ndarray:
        """Return estimated inner products of the centered rows of X with those of a sketch, (n, n_items)."""
        queries = self.decision_function(X)
        if items.codes.n_bits != queries.shape[1]:
            raise ValueError(
                f"The sketch holds codes of {items.codes.n_bits} bits; this hasher writes "
                f"{queries.shape[1]}. Sketch items and ask for distances with the same hasher."
            )

        def of(tile: slice) -> np.ndarray:
            signs = items.codes[tile].to_signs().astype(queries.dtype)
            return (signs @ queries.T) * items.scales[tile, None]

        return fill_by_tiles(len(items), len(queries), queries.dtype, of).T

    def asymmetric_distances(self, X, items: Sketch) -> np.ndarray:
        """Return estimated squared Euclidean distances of X to the rows of a sketch, (n, n_items).

        An estimate may be slightly negative; clipping it would tie the nearest rows.
        """
        products = self.asymmetric_products(X, items)
        return self._squared_norms(X)[:, None] + items.squared_norms - 2 * products

    def _squared_norms(self, X) -> np.ndarray:
        X = check_rows(self, X, fitting=False)
        return np.sum((X - self.mean_.astype(X.dtype, copy=False)) ** 2, axis=1)


def _check_limit(n_bits: int, limit: int, n_features: int, projection: str) -> None:
    if n_bits > limit:
        raise ValueError(
            f"n_bits is {n_bits}; X has {n_features} feature(s), so projection={projection!r} gives at most "
            f"{limit} bits. Lower n_bits, or use a method without this limit, such as LSHash."
        )


def _flipped_hadamard(order: int, n_features: int, rng) -> np.ndarray:
    """Return orthonormal rows of a Hadamard matrix in random order, features flipped at random."""
    rows = hadamard_matrix(order)[rng.permutation(order), :n_features]
    flips = np.where(rng.random_sample(n_features) < 0.5, -1.0, 1.0)
    return rows * flips / np.sqrt(order)
