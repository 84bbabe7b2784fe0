"""Anchor graph hashing, one layer or two (Liu, Wang, Kumar and Chang 2011)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...exceptions import InputError
from ...learning.kernels.anchors import AnchorsLike, choose_anchors
from ...learning.linalg import fill_by_tiles, positive_peaks, smallest_columns, squared_distances
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts, Variant


class AnchorGraphHash(BaseHasher):
    r"""Hash by the signs of smooth functions on a graph that joins rows through shared anchors.

    Row x is tied to its n_neighbors nearest anchors :math:`u_j` by the weights

    .. math:: z_j(x) = \exp(-\|x - u_j\|^2/\sigma^2) / \sum_{j'} \exp(-\|x - u_{j'}\|^2/\sigma^2),

    and rows to each other by :math:`\hat A = Z \Lambda^{-1} Z^T`, :math:`\Lambda = \mathrm{diag}(Z^T 1)`. Its
    leading eigenvectors after the trivial one, extended to new rows, are :math:`y(x) = W^T z(x)` with
    :math:`W = \sqrt{n} \Lambda^{-1/2} V \Sigma^{-1/2}`, where :math:`V, \Sigma` are the eigenpairs of
    :math:`\Lambda^{-1/2} Z^T Z \Lambda^{-1/2}`. Bits are the signs of y. With two layers, half as many
    eigenvectors are used and each side of a first bit is cut again, at the thresholds that keep the cut
    smooth on the graph and balanced (closed form; Section 5 of the paper).

    Eigenvalues of 1 (within drop_tol) are skipped: the constant vector, and on a graph that falls apart also
    the indicators of its parts, so clusters with no anchor in common are not told apart by these bits.
    O(n m d) for the graph of m anchors, O(n s^2 + m^3) for the eigenvectors.

    Parameters
    ----------
    n_bits : int, default=32
        Even for two layers. At most the number of usable eigenvalues (twice that for two layers), which is
        below the number of anchors.
    variant : {"one_layer", "two_layers"}, default="one_layer"
    anchors : {"kmeans", "random"} or array of shape (n_anchors, n_features), default="kmeans"
    n_anchors : int, default=300
    n_neighbors : int, default=3
        Anchors each row is tied to; fewer where there are fewer anchors.
    sigma : float or None, default=None
        None: the mean distance to the n_neighbors-th nearest anchor.
    drop_tol : float, default=1e-3
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : array of shape (n_anchors, n_features)
    sigma_ : float
    variant_ : str
    n_neighbors_ : int, number of anchors each row is tied to
    projections_ : array of shape (n_anchors, n_functions), W
    eigenvalues_ : array of shape (n_functions,), descending
    thresholds_ : array of shape (2, n_functions)
        Where the second layer cuts the upper and the lower side; two layers only.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import AnchorGraphHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = AnchorGraphHash(16, variant="two_layers", random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.85  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Liu, Wang, Kumar, Chang: Hashing with Graphs",
        year=2011,
        labels="ignored",
        cost="n x anchors x features + anchors^3",
        max_bits="n_anchors",
    )
    variants = (Variant("AnchorGraphHash two layers", {"variant": "two_layers"}, {"bits_multiple_of": 2}),)

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["one_layer", "two_layers"] = "one_layer",
        anchors: AnchorsLike = "kmeans",
        n_anchors: int = 300,
        n_neighbors: int = 3,
        sigma: float | None = None,
        drop_tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.anchors = anchors
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.drop_tol = drop_tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> AnchorGraphHash:
        """Build the anchor graph and compute its smooth functions; y is ignored."""
        n_bits, layers = self._check_bits()
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", low=1)
        drop_tol = check_number(self.drop_tol, "drop_tol", low=0.0)
        X = check_rows(self, X, fitting=True)
        # Rounding in single precision changes the anchors, and with them the graph and all its functions.
        rows = X.astype(np.float64)
        anchors = choose_anchors(rows, self.anchors, self.n_anchors, self.random_state)
        columns, distances = nearest_anchors(rows, anchors, min(n_neighbors, len(anchors)))
        if self.sigma is None:
            self.sigma_ = float(np.sqrt(distances[:, -1]).mean(dtype=np.float64)) or 1.0
        else:
            self.sigma_ = check_number(self.sigma, "sigma", low=0.0, strict=True)
        Z = anchor_affinities(columns, distances, self.sigma_, len(anchors))
        used = np.unique(columns)
        self.anchors_, self.n_neighbors_ = anchors[used].astype(X.dtype), columns.shape[1]
        Z = Z[:, used]
        W, self.eigenvalues_ = smooth_functions(Z, n_bits // layers, drop_tol)
        if W.shape[1] * layers < n_bits:
            raise InputError(
                "{parameter} is {value}",
                "this graph of {n_used} anchors and n_samples={n_samples} gives at most {most} bits",
                "Lower {parameter}, or raise {n_anchors} or {n_neighbors}.",
                parameter="n_bits",
                value=n_bits,
                n_used=len(used),
                n_samples=len(X),
                most=W.shape[1] * layers,
            )
        self.projections_ = W.astype(X.dtype)
        self.variant_ = self.variant
        if layers == 2:
            self.thresholds_ = second_layer_thresholds(Z, Z @ W).astype(X.dtype)
        return self

    def _check_bits(self) -> tuple[int, int]:
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        variant = check_choice(self.variant, "variant", ("one_layer", "two_layers"))
        layers = 2 if variant == "two_layers" else 1
        if n_bits % layers:
            raise InputError(
                "{parameter} is {value}",
                "two layers give an even number of bits",
                "Use {more} or {less}." if n_bits > 1 else "Use {more}.",
                parameter="n_bits",
                value=n_bits,
                more=n_bits + 1,
                less=n_bits - 1,
            )
        return n_bits, layers

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the smooth functions, then for two layers the distances to the second cuts."""
        X = check_rows(self, X, fitting=False)
        columns, distances = nearest_anchors(X, self.anchors_, self.n_neighbors_)
        Z = anchor_affinities(columns, distances, self.sigma_, len(self.anchors_))
        first = (Z @ self.projections_).astype(X.dtype)
        if self.variant_ == "one_layer":
            return first
        upper, lower = self.thresholds_
        return np.hstack([first, np.where(signs_of(first) > 0, first - upper, lower - first)])


def nearest_anchors(X: np.ndarray, anchors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest anchors of each row and the squared distances to them, both (n_samples, k)."""

    def of(tile: slice) -> np.ndarray:
        distances = squared_distances(X[tile], anchors)
        columns = smallest_columns(distances, k)
        return np.hstack([columns, np.take_along_axis(distances, columns, axis=1)])

    both = fill_by_tiles(len(X), 2 * k, np.float64, of)
    return both[:, :k].astype(np.int64), both[:, k:]


def anchor_affinities(columns: np.ndarray, distances: np.ndarray, sigma: float, n_anchors: int) -> csr_array:
    """Return Z: each row has n_neighbors entries that sum to one."""
    # Distances count from the nearest anchor, so that a far row cannot make all its weights underflow.
    weights = np.exp((distances[:, :1] - distances) / sigma**2)
    weights /= weights.sum(axis=1, keepdims=True)
    n_samples, k = columns.shape
    starts = np.arange(0, n_samples * k + 1, k)
    return csr_array((weights.ravel(), columns.ravel(), starts), shape=(n_samples, n_anchors))


def smooth_functions(Z: csr_array, n_functions: int, drop_tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return W of shape (n_anchors, n_usable), with Y = ZW and Y'Y = n I, and the eigenvalues, descending."""
    degrees = Z.sum(axis=0)
    scale = 1.0 / np.sqrt(degrees)
    M = (Z.T @ Z).toarray() * scale[:, None] * scale
    with single_threaded_blas():
        values, vectors = eigh(M)
    # Below lies rounding: the eigenvalues are at most 1 and exact to about eps.
    usable = (values < 1 - drop_tol) & (values > len(M) * np.finfo(M.dtype).eps)
    kept = np.flatnonzero(usable)[::-1][:n_functions]
    V = positive_peaks(vectors[:, kept].T).T
    W = np.sqrt(Z.shape[0]) * scale[:, None] * V / np.sqrt(values[kept])
    return W, values[kept]


def second_layer_thresholds(Z: csr_array, Y: np.ndarray) -> np.ndarray:
    r"""Return the upper and the lower cut of each function, shape (2, n_functions).

    With :math:`L = I - Z \Lambda^{-1} Z^T` and P the rows where y >= 0, they minimize :math:`v^T L v` over
    :math:`v = |y| - b_+ 1_P + b_- 1_{\bar P}` subject to :math:`1^T v = 0`. As L has no pull on constants,
    only :math:`b_+ + b_- = 1_P^T L |y| \,/\, 1_P^T L 1_P` matters to the cut, and the sum fixes the rest.
    """
    n_samples = len(Y)
    degrees = Z.sum(axis=0)
    size, inside = np.abs(Y), (signs_of(Y) > 0).astype(np.float64)
    n_upper = inside.sum(axis=0)
    flow_inside, flow_size = Z.T @ inside, Z.T @ size
    cut = n_upper - (flow_inside**2 / degrees[:, None]).sum(axis=0)
    pull = (inside * size).sum(axis=0) - (flow_inside * flow_size / degrees[:, None]).sum(axis=0)
    # Sides that share no anchor have a cut of zero, so the sum of both thresholds is arbitrary; we take zero.
    total = np.divide(pull, cut, out=np.zeros_like(pull), where=cut > 1e-12 * n_samples)
    mass = size.sum(axis=0)
    upper = (mass + (n_samples - n_upper) * total) / n_samples
    lower = (n_upper * total - mass) / n_samples
    return np.stack([upper, lower])
