"""Binary reconstructive embeddings, BRE (Kulis and Darrell 2009)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.linalg import fill_by_tiles, unit_rows
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import PairsLike, check_pairs, require_labels
from ._bre_loops import objective, sweep

# A sweep moves random weights, so one that gains nothing does not mean that none can.
_WINDOW = 10


class BRE(BaseHasher):
    r"""Fit Hamming distances to given distances by exact moves of one weight at a time.

    Rows are centered and scaled to unit length. Bit b is :math:`[\sum_j W_{bj}\, x_{S_b(j)}^T x \ge 0]`, a
    linear kernel expansion over a random subset :math:`S_b` of the training rows. The weights minimize

    .. math:: O(W) = \sum_{(i,j)} \bigl( d_{ij} - \tfrac{1}{B} \|h(x_i) - h(x_j)\|_H \bigr)^2

    over random pairs (Kulis and Darrell 2009), where :math:`d_{ij}` is half the squared distance, scaled to a
    maximum of 1, or with ``variant="supervised"`` 0 within a class and 1 between classes. Moving one weight flips
    the bits of the rows one after the other, so its best value is computed exactly in O(n log n + pairs).

    Parameters
    ----------
    n_bits : int, default=32
    variant : {"unsupervised", "supervised"}, default="unsupervised"
        Learn from distances, or from labels (of at least some rows) or pairs.
    n_labeled : int or None, default=1000
        How many rows to learn from, drawn at random, only labeled ones if supervised; None for all. The kernel of
        these rows takes 8 n_labeled^2 bytes. Ignored with ``pairs``.
    n_support : int, default=50
        Training rows each bit is expanded on.
    pair_fraction : float, default=0.05
        Each training row is paired with this share of the others, at random.
    max_iter : int, default=50
        Sweeps; one moves one weight of every bit.
    tol : float, default=1e-4
        Stop when ten sweeps together lower the objective by less than tol times its start.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    mean_ : array of shape (n_features,)
    components_ : array of shape (n_bits, n_features)
        The expansions, summed up.
    objective_history_ : array of shape (n_iter_ + 1,)
        O before the first and after each sweep; it never rises.
    n_iter_ : int, sweeps made
    n_labeled_ : int
        How many labeled rows were learned from; 0 if unsupervised.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import BRE
    >>> X, _ = load_digits(return_X_y=True)
    >>> history = BRE(8, n_labeled=200, random_state=0).fit(X).objective_history_
    >>> bool(history[-1] < history[0])
    True
    """

    facts = Facts(
        paper="Kulis, Darrell: Learning to Hash with Binary Reconstructive Embeddings",
        year=2009,
        labels="ignored",
        cost="sweeps x n_bits x (rows log rows + pairs), 1,000 rows and 50,000 pairs",
    )
    variants = (Variant("BRE supervised", {"variant": "supervised"}, {"labels": "some"}),)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["unsupervised", "supervised"] = "unsupervised",
        n_labeled: int | None = 1000,
        n_support: int = 50,
        pair_fraction: float = 0.05,
        max_iter: int = 50,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.n_labeled = n_labeled
        self.n_support = n_support
        self.pair_fraction = pair_fraction
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> BRE:
        """Learn from the rows alone, or for ``variant="supervised"`` from labels or pairs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), default=None
            Ignored unless supervised.
        pairs : (first, second, similarity), default=None
            Row indices, and +1 or -1; used instead of y. Only if supervised.
        """
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        n_support = check_integer(self.n_support, "n_support", low=1)
        check_choice(self.variant, "variant", ("unsupervised", "supervised"))
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        tol = check_number(self.tol, "tol", low=0.0)
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        rows, joined, targets = self._training_pairs(X, y, pairs, rng)
        with single_threaded_blas():
            unit = unit_rows(X[rows] - self.mean_)
            K = (unit @ unit.T).astype(np.float64)
            targets = kernel_distances(K, joined) if targets is None else targets
            graph = pair_graph(joined, targets, len(rows))
            weights, history = learn_weights(K, graph, n_bits, min(n_support, len(rows)), max_iter, tol, rng)
            self.components_ = (weights @ unit).astype(X.dtype)
        self.objective_history_ = history
        self.n_labeled_ = len(rows) if self.variant == "supervised" else 0
        self.n_iter_ = len(history) - 1
        return self

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the expansions at each row, shape (n_samples, n_bits)."""
        X = check_rows(self, X, fitting=False)

        def of(tile: slice) -> np.ndarray:
            return unit_rows(X[tile] - self.mean_) @ self.components_.T

        return fill_by_tiles(len(X), len(self.components_), X.dtype, of)

    def _training_pairs(
        self, X: np.ndarray, y: LabelsLike, pairs: PairsLike | None, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the rows to learn from, pairs of positions in them (2, n_pairs), and target distances.

        The targets are None if they are to come from the rows.
        """
        n_labeled = len(X) if self.n_labeled is None else check_integer(self.n_labeled, "n_labeled", low=2)
        pair_fraction = check_number(self.pair_fraction, "pair_fraction", low=0.0, strict=True)
        if pairs is not None:
            if self.variant != "supervised":
                raise ValueError(
                    "pairs were passed, but variant='unsupervised' learns from the rows alone. "
                    "Set variant='supervised'."
                )
            pairs = check_pairs(pairs, len(X))
            rows, joined = np.unique(np.stack(pairs[:2]), return_inverse=True)
            return rows, joined.reshape(2, -1), (pairs.similarity < 0).astype(np.float64)
        allowed = np.arange(len(X))
        if self.variant == "supervised":
            labels = require_labels(self, y, len(X), partial=True, n_classes=2)
            allowed = np.flatnonzero(labels.labeled)
        rows = np.sort(rng.choice(allowed, min(n_labeled, len(allowed)), replace=False))
        joined = random_partners(len(rows), pair_fraction, rng)
        if self.variant == "unsupervised":
            return rows, joined, None
        first, second = labels.index[rows][joined]
        return rows, joined, (first != second).astype(np.float64)


class PairGraph(NamedTuple):
    """Each row's partners: ``partners[starts[i]:starts[i + 1]]`` at distances ``targets`` to reach.

    ``mirrors`` points from one listing of a pair to the other.
    """

    starts: np.ndarray
    partners: np.ndarray
    mirrors: np.ndarray
    targets: np.ndarray


def pair_graph(joined: np.ndarray, targets: np.ndarray, n_rows: int) -> PairGraph:
    """List each pair at both of its rows; a pair that comes twice counts twice."""
    first, second = joined
    heads, tails = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(heads, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=n_rows))])
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    mirrors = np.roll(place, len(first))[order]
    targets = np.concatenate([targets, targets])[order]
    return PairGraph(starts, tails[order].astype(np.int32), mirrors, targets)


def random_partners(n_rows: int, fraction: float, rng: np.random.RandomState) -> np.ndarray:
    """Return pairs of shape (2, n_rows * share): every row with random other rows."""
    share = min(max(1, round(fraction * n_rows)), n_rows - 1)
    first = np.repeat(np.arange(n_rows), share)
    second = rng.randint(0, n_rows - 1, len(first))
    return np.stack([first, second + (second >= first)])


def kernel_distances(K: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Return half the squared distances of the pairs, scaled to a maximum of 1."""
    first, second = joined
    lengths = np.diag(K)
    distances = np.maximum((lengths[first] + lengths[second]) / 2 - K[first, second], 0)
    return distances / max(distances.max(), np.finfo(float).tiny)


def learn_weights(
    K: np.ndarray,
    graph: PairGraph,
    n_bits: int,
    n_support: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of all training rows, shape (n_bits, n_rows), and the objective after each sweep."""
    n_rows = len(K)
    subsets = np.stack([rng.permutation(n_rows)[:n_support] for _ in range(n_bits)])
    # Any scale would do: codes are signs, and the thresholds of a weight grow with the weights.
    weights = 0.001 * rng.standard_normal((n_bits, n_support))
    scores = np.stack([w @ K[subset] for w, subset in zip(weights, subsets, strict=True)])
    codes = signs_of(scores)
    heads = np.repeat(np.arange(n_rows), np.diff(graph.starts))
    counts = (codes[:, heads] != codes[:, graph.partners]).sum(axis=0, dtype=np.int32)
    history = [objective(graph.targets, counts, n_bits)]
    for _ in range(max_iter):
        chosen = rng.randint(0, n_support, n_bits)
        history.append(sweep(K, subsets, weights, chosen, scores, codes, *graph, counts)[-1])
        if len(history) > _WINDOW and history[-1 - _WINDOW] - history[-1] < tol * history[0]:
            break
    expanded = np.zeros((n_bits, n_rows))
    np.put_along_axis(expanded, subsets, weights, axis=1)
    return expanded, np.array(history)
