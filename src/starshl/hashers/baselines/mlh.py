"""Minimal loss hashing: a hinge on Hamming distances, descended through an upper bound.

Norouzi and Fleet 2011.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import Labels, LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.linalg import project, unit_rows
from ..base import BaseHasher, LinearHasher, all_or_nothing
from ..facts import Facts
from ..supervision import Pairs, PairsLike, check_pairs, pairs_from_labels, require_labels
from ._mlh_loops import descend_once
from ._shared import centered_rows

# Similar pairs on which random codes are tried to choose the radius.
_PAIRS_FOR_RADIUS = 5_000


class MLH(LinearHasher):
    r"""Learn linear codes whose Hamming distances pass a radius for dissimilar pairs only.

    For a similar pair at Hamming distance m the loss is :math:`(m - \rho + 1)_+ / (B - \rho + 1)`, for a
    dissimilar one :math:`(\rho - m + 1)_+ / (\rho + 1)`, B being n_bits. Stochastic gradient descent lowers
    its upper bound (Norouzi and Fleet 2011, Eq. 6)

    .. math::

        \max_{g, h \in \{\pm1\}^B} \big[\ell(\|g - h\|_H) + g^T W x + h^T W z\big] - \|W x\|_1 - \|W z\|_1,

    whose maximum is found exactly by sorting the bits.

    Rows are centered, reduced to principal components and brought to unit length, which sets the size of the steps but
    not the codes, as there is no offset. The share of similar pairs in the batches replaces the weight that the paper
    gives to dissimilar pairs. The radius is not cross-validated: "auto" is the smallest at which random codes of the
    same length hold 30% of the similar pairs.

    Parameters
    ----------
    n_bits : int, default=32
    radius : int or "auto", default="auto"
        ρ, from 0 to n_bits.
    similar_share : float, default=0.5
        Share of similar pairs among those visited.
    n_components : int or None, default=40
        Principal components kept, if X has more features than that; None keeps the features.
    max_iter : int, default=25
        The authors' program runs 75 and more; on digits and MNIST the rest gains about 0.01.
    n_pairs : int, default=100000
        Drawn anew for each epoch, from the labels or from the pairs given to ``fit``.
    batch_size : int, default=100
    learning_rate : float, default=0.1
        Falls linearly to zero over the epochs.
    momentum : float, default=0.9
    regularization : float, default=1e-4
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    radius_ : int
    n_iter_ : int
    objective_history_ : array of shape (max_iter,)
        Mean bound over the pairs of each epoch; falls on the whole, but a stochastic method may rise.
    bit_balance_ : array of shape (n_bits,)
        Share of training rows with +1; near 0 or 1 means a useless bit.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import MLH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = MLH(16, max_iter=5, n_pairs=10_000, random_state=0).fit(X[:1000], y[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.8  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Norouzi, Fleet: Minimal Loss Hashing for Compact Binary Codes",
        year=2011,
        labels="some",
        cost="epochs x pairs x components x n_bits",
        samples="vectors and labels or pairs",
    )

    radius_: int

    def __init__(
        self,
        n_bits: int = 32,
        *,
        radius: int | Literal["auto"] = "auto",
        similar_share: float = 0.5,
        n_components: int | None = 40,
        max_iter: int = 25,
        n_pairs: int = 100_000,
        batch_size: int = 100,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        regularization: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.radius = radius
        self.similar_share = similar_share
        self.n_components = n_components
        self.max_iter = max_iter
        self.n_pairs = n_pairs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> MLH:
        """Learn the projections from pairs, or from pairs drawn from labels.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Labels; unlabeled rows enter no pair. Not read if pairs are given.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 for similar, -1 for dissimilar.
        """
        n_bits = self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        draw = _PairSource(self, X, y, pairs, self.similar_share, rng)
        reduced = centered_rows(X, self.n_components)
        rows = unit_rows(reduced.rows)
        weights = 0.1 * rng.standard_normal((n_bits, rows.shape[1]))  # the start of the authors' program
        if self.radius == "auto":
            self.radius_ = _radius_of_random_codes(signs_of(project(rows, weights)), draw(_PAIRS_FOR_RADIUS))
        else:
            self.radius_ = int(self.radius)
        with single_threaded_blas():
            self.objective_history_ = self._descend(rows, weights, draw, rng)
        self.components_, self.intercept_ = reduced.in_features(weights, 0.0, X.dtype)
        self.n_iter_ = len(self.objective_history_)
        self.bit_balance_ = (signs_of(project(rows, weights)) > 0).mean(axis=0)
        return self

    def _check_settings(self) -> int:
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        if self.radius != "auto":
            check_integer(self.radius, "radius", low=0, high=n_bits)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1)
        for name in ("max_iter", "n_pairs", "batch_size"):
            check_integer(getattr(self, name), name, low=1)
        check_number(self.learning_rate, "learning_rate", low=0, strict=True)
        for name in ("similar_share", "momentum", "regularization"):
            check_number(getattr(self, name), name, low=0)
        if self.similar_share > 1:
            raise ValueError(f"similar_share is {self.similar_share}; it is a share, from 0 to 1.")
        if self.momentum >= 1:
            raise ValueError(f"momentum is {self.momentum}; it must be below 1, or the steps never fade.")
        return n_bits

    def _descend(
        self, rows: np.ndarray, weights: np.ndarray, draw: _PairSource, rng: np.random.RandomState
    ) -> np.ndarray:
        """Train ``weights`` in place; return the mean bound of each epoch."""
        losses = hinge_losses(self.n_bits, self.radius_)
        speed = np.zeros_like(weights)
        history = np.empty(self.max_iter)
        for epoch in range(self.max_iter):
            pairs = draw(self.n_pairs)
            order = rng.permutation(len(pairs.first))
            history[epoch] = descend_once(
                rows,
                pairs.first[order],
                pairs.second[order],
                losses,
                (pairs.similarity[order] < 0).astype(np.int64),
                weights,
                speed,
                self.learning_rate * (1.0 - epoch / self.max_iter),
                self.momentum,
                self.regularization,
                self.batch_size,
            )
        return history


def hinge_losses(n_bits: int, radius: int) -> np.ndarray:
    """Return the loss by Hamming distance 0 ... n_bits: row 0 of similar, row 1 of dissimilar pairs.

    Examples
    --------
    >>> hinge_losses(2, 1).tolist()
    [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
    """
    distance = np.arange(n_bits + 1.0)
    losses = np.stack([np.maximum(distance - radius + 1, 0), np.maximum(radius - distance + 1, 0)])
    return losses / np.array([[n_bits - radius + 1], [radius + 1]])


class _PairSource:
    """Draw pairs again and again, from labels or from the pairs given, with a set share of similar ones."""

    def __init__(
        self,
        estimator: BaseHasher,
        X: np.ndarray,
        y: LabelsLike,
        pairs: PairsLike | None,
        similar_share: float,
        rng: np.random.RandomState,
    ) -> None:
        self.rng, self.share = rng, similar_share
        self.labels: Labels | None = None
        if pairs is None:
            self.labels = require_labels(estimator, y, len(X), partial=True, n_classes=2)
            return
        self.pairs = check_pairs(pairs, len(X))
        self.kinds = [np.flatnonzero(self.pairs.similarity == kind) for kind in (1, -1)]
        if not all(map(len, self.kinds)):
            self.share = float(len(self.kinds[0]) > 0)

    def __call__(self, n_pairs: int) -> Pairs:
        if self.labels is not None:
            return pairs_from_labels(self.labels, n_pairs, self.share, self.rng)
        n_similar = round(self.share * n_pairs)
        counts = (n_similar, n_pairs - n_similar)
        drawn = [kind[self.rng.randint(0, len(kind), n)] for kind, n in zip(self.kinds, counts, strict=True) if n]
        chosen = np.concatenate(drawn)
        return Pairs(*(column[chosen] for column in self.pairs))


def _radius_of_random_codes(bits: np.ndarray, pairs: Pairs) -> int:
    similar = pairs.similarity > 0
    if not similar.any():
        # Nothing to measure by; most dissimilar pairs are farther apart, at about half of the bits.
        return bits.shape[1] // 4
    distances = np.count_nonzero(bits[pairs.first[similar]] != bits[pairs.second[similar]], axis=1)
    return int(np.quantile(distances, 0.3, method="inverted_cdf"))
