"""Semi-supervised hashing (Wang, Kumar and Chang 2010, 2012): fit labeled pairs, normalized over all rows."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.sparse.linalg import eigsh
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...exceptions import InputError
from ...learning.linalg import gram, positive_peaks, project
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import Pairs, PairsLike, check_pairs, require_labels

# Below this size a dense eigenproblem is faster than Lanczos iterations.
_LANCZOS_ABOVE_FEATURES = 64


class SSH(LinearHasher):
    r"""Learn directions that agree with labeled pairs and along which all rows vary much.

    With centered rows X, of which :math:`X_l` take part in pairs, and pair labels S (+1 similar, -1 not,
    0 unknown), directions follow from the adjusted covariance

    .. math:: M = \frac{X_l^\top S X_l}{\|X_l^\top S X_l\|_2} + \eta\, \frac{X^\top X}{\|X^\top X\|_2}

    (Wang, Kumar and Chang 2012; both terms are scaled to unit spectral norm here, so that :math:`\eta` does
    not depend on the numbers of rows and pairs). A row is similar to itself.

    ``variant="orthogonal"`` takes the top eigenvectors of M.

    ``variant="nonorthogonal"`` relaxes orthogonality to a penalty :math:`\rho`: with
    :math:`Q = I + M/\rho = L L^\top` and U the top eigenvectors, :math:`W = L U`. Here
    :math:`\rho = \max(0, -\lambda_{\min}) + \|M\|_2`, which makes Q positive definite.

    ``variant="sequential"`` learns one bit after another. Pairs that a bit gets wrong gain weight,
    :math:`S \leftarrow S - \alpha T`, where T is :math:`X_l w w^\top X_l^\top` where its sign disagrees with that
    of S, and zero elsewhere; then w is removed from the rows of the second term. The products are scaled to a mean
    magnitude of 1. (Scaled to a maximum of 1, most of them are tiny, S hardly changes, and later bits repeat earlier
    ones.) This is the variant worth comparing: the two others get worse with many bits.

    Parameters
    ----------
    n_bits : int, default=32
        At most n_features, except for "sequential".
    variant : {"sequential", "orthogonal", "nonorthogonal"}, default="sequential"
    eta : float, default=1.0
        Weight of the variance of all rows.
    alpha : float, default=1.0
        Step by which wrong pairs gain weight, "sequential" only.
    n_labeled : int or None, default=1000
        How many labeled rows to learn from, drawn at random; None for all. S takes 8 n_labeled^2 bytes.
        Ignored with ``pairs``.
    threshold : {"zero", "median"}, default="zero"
        Where to cut the projections of the centered rows.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)
    n_labeled_ : int
        How many labeled rows were learned from.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SSH
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> few = y[:1000].copy()
    >>> few[300:] = -1  # keep 300 labels
    >>> hasher = SSH(8, random_state=0).fit(X[:1000], few)
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.55  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Wang, Kumar, Chang: Semi-Supervised Hashing for Large-Scale Search",
        year=2012,
        labels="some",
        cost="n x features^2 + n_bits x labeled^2 x features",
        samples="vectors, with labels of some rows or pairs",
    )
    variants = (
        Variant("SSH orthogonal", {"variant": "orthogonal"}, {"max_bits": "n_features"}),
        Variant("SSH nonorthogonal", {"variant": "nonorthogonal"}, {"max_bits": "n_features"}),
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["sequential", "orthogonal", "nonorthogonal"] = "sequential",
        eta: float = 1.0,
        alpha: float = 1.0,
        n_labeled: int | None = 1000,
        threshold: Literal["zero", "median"] = "zero",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.eta = eta
        self.alpha = alpha
        self.n_labeled = n_labeled
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None, *, pairs: PairsLike | None = None) -> SSH:
        """Learn from labels of some rows, or from pairs ``(first, second, similarity)`` of row indices."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        variant = check_choice(self.variant, "variant", ("sequential", "orthogonal", "nonorthogonal"))
        eta = check_number(self.eta, "eta", low=0)
        alpha = check_number(self.alpha, "alpha", low=0)
        check_choice(self.threshold, "threshold", ("zero", "median"))
        X = check_rows(self, X, fitting=True)
        if variant != "sequential" and n_bits > X.shape[1]:
            raise InputError(
                "{parameter} is {value}",
                "X has {most} feature(s), so variant={variant!r} gives at most {most} bits",
                "Lower {parameter} or use variant='sequential'.",
                parameter="n_bits",
                value=n_bits,
                variant=variant,
                most=X.shape[1],
            )
        rows, S = self._similarities(X, y, pairs)
        mean = X.mean(axis=0, dtype=np.float64)
        centered = X - mean
        labeled, scatter = centered[rows], gram(centered)
        if variant == "sequential":
            W = sequential_directions(labeled, S, scatter, n_bits, eta, alpha)
        elif variant == "orthogonal":
            W = orthogonal_directions(labeled, S, scatter, n_bits, eta)
        else:
            W = nonorthogonal_directions(labeled, S, scatter, n_bits, eta)
        W = positive_peaks(W)
        self.n_labeled_ = len(rows)
        offset = np.median(project(centered, W), axis=0) if self.threshold == "median" else 0.0
        self.components_ = W.astype(X.dtype)
        self.intercept_ = (-project(W, mean[None])[:, 0] - offset).astype(X.dtype)
        return self

    def _similarities(self, X: np.ndarray, y: LabelsLike, pairs: PairsLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that take part in pairs, and S."""
        n_labeled = None if self.n_labeled is None else check_integer(self.n_labeled, "n_labeled", low=2)
        if pairs is not None:
            return _matrix_of(check_pairs(pairs, len(X)))
        labels = require_labels(self, y, len(X), partial=True, n_classes=2)
        rows = np.flatnonzero(labels.labeled)
        if n_labeled is not None and n_labeled < len(rows):
            rows = np.sort(check_random_state(self.random_state).choice(rows, n_labeled, replace=False))
        classes = labels.index[rows]
        return rows, np.where(classes[:, None] == classes, 1.0, -1.0)


def _matrix_of(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    rows, ends = np.unique([pairs.first, pairs.second], return_inverse=True)
    first, second = ends.reshape(2, -1)
    S = np.eye(len(rows))
    S[first, second] = S[second, first] = pairs.similarity
    return rows, S


def orthogonal_directions(
    labeled: np.ndarray, S: np.ndarray, scatter: np.ndarray, n_bits: int, eta: float
) -> np.ndarray:
    """Return the top eigenvectors of M as rows.

    Parameters
    ----------
    labeled : array of shape (n_labeled, n_features), centered rows
    S : array of shape (n_labeled, n_labeled)
    scatter : array of shape (n_features, n_features), X'X of all centered rows
    """
    M = _adjusted_covariance(labeled, S, scatter, eta)
    return _top_eigenvectors(M, n_bits)


def nonorthogonal_directions(
    labeled: np.ndarray, S: np.ndarray, scatter: np.ndarray, n_bits: int, eta: float
) -> np.ndarray:
    """Return the rows of (L U)' with L L' = I + M / rho and U the top eigenvectors of M."""
    M = _adjusted_covariance(labeled, S, scatter, eta)
    with single_threaded_blas():
        values = np.linalg.eigvalsh(M)
        rho = max(0.0, -values[0]) + max(np.abs(values).max(), np.finfo(np.float64).tiny)
        factor = cholesky(np.eye(len(M)) + M / rho, lower=True)
        return _top_eigenvectors(M, n_bits) @ factor.T


def sequential_directions(
    labeled: np.ndarray, S: np.ndarray, scatter: np.ndarray, n_bits: int, eta: float, alpha: float
) -> np.ndarray:
    """Return one direction after another; S and the scatter are corrected in between."""
    directions = []
    normalized = scatter / _spectral_norm(scatter)
    with single_threaded_blas():
        fit_scale = _spectral_norm(labeled.T @ (S @ labeled))
        for _ in range(n_bits):
            M = labeled.T @ (S @ labeled) / fit_scale + eta * normalized
            w = _leading_eigenvector(M)
            directions.append(w)
            S = raise_violated(S, labeled @ w, alpha)
            along = normalized @ w
            # (I - ww') C (I - ww'), the scatter of rows from which w has been removed.
            normalized = normalized - np.outer(w, along) - np.outer(along, w) + (w @ along) * np.outer(w, w)
    return np.array(directions)


def raise_violated(S: np.ndarray, projections: np.ndarray, alpha: float) -> np.ndarray:
    r"""Return :math:`S - \alpha T` with T the products :math:`p_i p_j` where they disagree with S.

    The products are divided by their mean magnitude.

    Examples
    --------
    >>> import numpy as np
    >>> raise_violated(np.ones((2, 2)), np.array([3.0, -1.0]), 1.0).tolist()
    [[1.0, 1.75], [1.75, 1.0]]
    """
    products = np.outer(projections, projections)
    products /= max(np.abs(products).mean(), np.finfo(np.float64).tiny)
    return S - alpha * np.where(products * S < 0, products, 0.0)


def _adjusted_covariance(labeled: np.ndarray, S: np.ndarray, scatter: np.ndarray, eta: float) -> np.ndarray:
    with single_threaded_blas():
        fit = labeled.T @ (S @ labeled)
    return fit / _spectral_norm(fit) + eta * scatter / _spectral_norm(scatter)


def _spectral_norm(matrix: np.ndarray) -> float:
    with single_threaded_blas():
        largest = np.abs(np.linalg.eigvalsh(matrix)[[0, -1]]).max()
    # Equal rows have a scatter of zero; dividing by one leaves it zero.
    return float(largest) if largest > 0 else 1.0


def _leading_eigenvector(matrix: np.ndarray) -> np.ndarray:
    if len(matrix) <= _LANCZOS_ABOVE_FEATURES:
        return _top_eigenvectors(matrix, 1)[0]
    # A fixed start, because ARPACK draws its own otherwise; random, so that no eigenvector is orthogonal to it.
    start = np.random.RandomState(0).standard_normal(len(matrix))
    with single_threaded_blas():
        _, vectors = eigsh(matrix, k=1, which="LA", v0=start)
    return vectors[:, 0]


def _top_eigenvectors(matrix: np.ndarray, n: int) -> np.ndarray:
    size = len(matrix)
    with single_threaded_blas():
        _, vectors = eigh(matrix, subset_by_index=(size - n, size - 1), check_finite=False)
    return vectors.T[::-1]
