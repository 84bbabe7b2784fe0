"""Self-taught hashing: spectral codes of the training rows, then one linear SVM per bit (Zhang et al. 2010)."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import run_all, single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...exceptions import InputError
from ...learning.linalg import nearest_rows, project, unit_rows
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts

# Below this many rows a dense eigensolver is as fast as Lanczos and never fails to converge.
_DENSE_ROWS = 400


class SelfTaughtHash(LinearHasher):
    r"""Balance spectral bits over a neighbor graph, then teach one linear SVM to predict each of them.

    Stage 1 solves the Laplacian eigenmap of the symmetrized k-nearest-neighbor graph W,

    .. math:: (D - W)\, v = \lambda D v, \qquad D = \mathrm{diag}(W 1),

    drops the constant vector and cuts each of the next n_bits vectors at its median. Stage 2 fits a linear
    SVM with squared hinge loss to each bit, so that new rows get codes too. Training rows that should be
    searched are encoded like queries, by the SVMs; the stage-1 codes are kept in ``spectral_codes_``.

    Choices made here, because the paper does not say:

    - A graph of several components has one zero eigenvalue per component. Their indicator vectors come first, in the
      order they would have if all rows were coupled by an infinitely weak uniform weight.
    - A median inside a run of equal values moves to the end of the run that leaves the bit better balanced.
    - The SVM sees rows divided by their root mean squared length, so ``C`` does not depend on the unit of
      the features; for the unit-length rows of the paper that changes nothing.

    Parameters
    ----------
    n_bits : int, default=32
        At most n_samples - 1, the number of eigenvectors that are not constant.
    n_neighbors : int, default=25
    weights : {"binary", "cosine", "heat"}, default="binary"
        Weight of an edge: 1, the cosine of the two rows (negative ones count as 0), or
        :math:`\exp(-d^2/s)` with s the mean squared distance over all edges.
    C : float, default=1.0
        Cost of the SVMs.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Starting vector of the eigensolver.

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    spectral_codes_ : array of shape (n_samples, n_bits), int8
        Stage-1 codes of the training rows.
    eigenvalues_ : array of shape (n_bits,)
        Smallest non-trivial eigenvalues of the eigenmap, ascending.
    bit_accuracy_ : array of shape (n_bits,)
        Share of training rows whose predicted bit equals the spectral one.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SelfTaughtHash
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SelfTaughtHash(8, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.55  # right digits among the ten nearest
    True
    >>> bool(abs(hasher.spectral_codes_.mean(axis=0)).max() < 0.01)  # every bit is balanced
    True
    """

    facts = Facts(
        paper="Zhang, Wang, Cai, Lu: Self-Taught Hashing for Fast Similarity Search",
        year=2010,
        labels="ignored",
        cost="n^2 x features + n_bits x linear SVM(n)",
        max_bits="n_samples - 1",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_neighbors: int = 25,
        weights: Literal["binary", "cosine", "heat"] = "binary",
        C: float = 1.0,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.C = C
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SelfTaughtHash:
        """Build the graph, cut its eigenvectors and fit the SVMs; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        n_neighbors = check_integer(self.n_neighbors, "n_neighbors", low=1)
        weights = check_choice(self.weights, "weights", ("binary", "cosine", "heat"))
        C = check_number(self.C, "C", low=0, strict=True)
        X = check_rows(self, X, fitting=True)
        if n_bits > len(X) - 1:
            raise InputError(
                "{parameter} is {value}",
                "{n_rows} training rows give at most {most} spectral bits",
                "Use {parameter} <= {most} or more rows.",
                parameter="n_bits",
                value=n_bits,
                n_rows=len(X),
                most=len(X) - 1,
            )
        rng = check_random_state(self.random_state)
        with single_threaded_blas():
            graph = neighbor_graph(X, n_neighbors, weights)
            self.eigenvalues_, vectors = laplacian_eigenmap(graph, n_bits, rng)
            self.spectral_codes_ = np.column_stack([cut_near_median(v) for v in vectors.T])
            self._fit_svms(X, C)
        return self

    def _fit_svms(self, X: np.ndarray, C: float) -> None:
        scale = float(np.sqrt(np.einsum("ij,ij->", X, X, dtype=np.float64) / len(X))) or 1.0
        rows = (X / scale).astype(np.float64)
        fits = run_all([partial(_linear_svm, rows, bit, C) for bit in self.spectral_codes_.T])
        self.components_ = (np.array([weights for weights, _ in fits]) / scale).astype(X.dtype)
        self.intercept_ = np.array([intercept for _, intercept in fits]).astype(X.dtype)
        predicted = signs_of(project(X, self.components_, self.intercept_))
        self.bit_accuracy_ = (predicted == signs_of(self.spectral_codes_)).mean(axis=0)


def neighbor_graph(X: np.ndarray, n_neighbors: int, weights: str) -> sp.csr_array:
    """Return the k-nearest-neighbor graph, symmetrized by the larger of the two weights."""
    rows = nearest_rows(X, X, min(n_neighbors, len(X) - 1), exclude_self=True)
    values = np.ones(rows.shape)
    if weights == "heat":
        squared = np.column_stack([np.square(X - X[near]).sum(axis=1) for near in rows.T])
        values = np.exp(-squared / (squared.mean(dtype=np.float64) or 1.0))
    elif weights == "cosine":
        unit = unit_rows(X)
        values = np.column_stack([np.einsum("ij,ij->i", unit, unit[near]) for near in rows.T]).clip(0.0, 1.0)
    starts = np.arange(0, rows.size + 1, rows.shape[1])
    graph = sp.csr_array((values.ravel().astype(np.float64), rows.ravel(), starts), shape=(len(X), len(X)))
    graph = graph.maximum(graph.T).tocsr()
    # A row without edges (all cosines zero) is its own component; the loop keeps its degree positive.
    alone = (graph.sum(axis=1) == 0).astype(np.float64)
    return (graph + sp.diags_array(alone)).tocsr()


def laplacian_eigenmap(
    graph: sp.csr_array, n_vectors: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest non-trivial solutions of (D - W) v = λ D v, as values and columns.

    The null space is spanned by the indicators of the connected components. It is taken out exactly
    (deflated), which leaves one component's problem well posed however many components there are.
    """
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    n_components, component = connected_components(graph, directed=False)
    inverse_root = 1.0 / np.sqrt(degrees)
    similarity = sp.diags_array(inverse_root) @ graph @ sp.diags_array(inverse_root)
    volumes = np.bincount(component, degrees)
    null_space = np.zeros((len(degrees), n_components))
    null_space[np.arange(len(degrees)), component] = np.sqrt(degrees / volumes[component])

    n_indicators = min(n_components - 1, n_vectors)
    indicators = _component_vectors(component, volumes)[:, :n_indicators]
    n_rest = n_vectors - n_indicators
    if not n_rest:
        return np.zeros(n_vectors), indicators
    values, vectors = _largest_eigenpairs(similarity.tocsr(), null_space, n_rest, rng)
    vectors = inverse_root[:, None] * vectors
    return np.r_[np.zeros(n_indicators), 1.0 - values], np.hstack([indicators, vectors])


def _component_vectors(component: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    """Return the zero-eigenvalue vectors except the constant one, as weak uniform coupling orders them."""
    sizes = np.bincount(component).astype(np.float64)
    coupling = np.diag(sizes) - np.outer(sizes, sizes) / sizes.sum()
    _, vectors = scipy.linalg.eigh(coupling, np.diag(volumes))
    return vectors[component, 1:]


def _largest_eigenpairs(
    similarity: sp.csr_array, null_space: np.ndarray, n_pairs: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    n_rows = similarity.shape[0]
    # Shifted by 2, the null space falls below every other eigenvalue of a matrix with spectrum in [-1, 1].
    if n_rows <= _DENSE_ROWS or n_pairs >= n_rows // 2:
        deflated = similarity.toarray() - 2.0 * null_space @ null_space.T
        values, vectors = scipy.linalg.eigh(deflated, subset_by_index=[n_rows - n_pairs, n_rows - 1])
    else:
        operator = LinearOperator(
            similarity.shape,
            matvec=lambda v: similarity @ v - 2.0 * null_space @ (null_space.T @ v),
            dtype=np.float64,
        )
        values, vectors = eigsh(operator, k=n_pairs, which="LA", v0=rng.standard_normal(n_rows))
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def cut_near_median(values: np.ndarray) -> np.ndarray:
    """Return +1 above and -1 below the cut nearest the median that separates distinct values, as int8."""
    ordered = np.sort(values)
    # Values that agree to eight digits of the range are one run: rounding must not cut inside it.
    cuts = np.flatnonzero(np.diff(ordered) > 1e-8 * (ordered[-1] - ordered[0])) + 1
    if not len(cuts):
        return np.ones(len(values), dtype=np.int8)
    cut = cuts[np.argmin(np.abs(cuts - len(values) / 2))]
    threshold = (ordered[cut - 1] + ordered[cut]) / 2
    return np.where(values > threshold, np.int8(1), np.int8(-1))


def _linear_svm(X: np.ndarray, bit: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    if bit.min() == bit.max():
        return np.zeros(X.shape[1]), float(bit[0])
    svm = LinearSVC(C=C, dual=False, tol=1e-3).fit(X, bit)
    return svm.coef_[0], float(svm.intercept_[0])
