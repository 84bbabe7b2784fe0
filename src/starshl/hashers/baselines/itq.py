"""Iterative quantization (Gong and Lazebnik 2011), on principal or on canonical directions."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...codes.binary import signs_of
from ...learning.linalg import column_means, gram, positive_peaks, project, random_rotation, required_directions
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts, Variant
from ..supervision import require_labels


class ITQ(LinearHasher):
    r"""Rotate a low-dimensional embedding so that its signs lose as little as possible.

    With V the embedded training rows, codes H and rotation R alternate to minimize

    .. math:: \|H - V R\|_F^2, \qquad H \in \{-1, +1\}^{N \times B}, \quad R R^\top = I

    (Gong and Lazebnik 2011, Eq. 2): ``H = sign(V R)``, then R is the orthogonal polar factor of
    :math:`V^\top H`. Both steps are exact, so the loss never rises.

    ``variant="pca"`` takes the n_bits principal directions. ``variant="cca"`` takes the canonical
    directions between rows and classes, each scaled by its correlation. At most n_classes - 1 of them
    exist, so for more bits V has fewer columns than R: R then has orthonormal rows, and the same
    directions are spread over all bits.

    Parameters
    ----------
    n_bits : int, default=32
        With ``variant="pca"`` at most the rank of the centered rows.
    variant : {"pca", "cca"}, default="pca"
        "cca" needs a label for every row.
    max_iter : int, default=50
        Most alternations; they end earlier when no code changes.
    regularization : float, default=0.1
        Ridge on the covariance of the features, as a share of their mean variance (the mean diagonal), so that
        codes do not depend on the unit of X; "cca" only. (An absolute 1e-4 on MNIST rows of unit length is a
        share of 0.13.)
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the first rotation.

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
        Embedding and rotation in one.
    intercept_ : array of shape (n_bits,)
    rotation_ : array of shape (n_directions, n_bits), orthonormal rows
    objective_history_ : array, the loss after every half-step: codes, rotation, codes, ...
    n_iter_ : int, alternations made

    Notes
    -----
    FAISS's ``ITQTransform`` also scales the centered rows to unit length before PCA; here that is left to
    a pipeline, as in the paper. Cost O(n d^2 + d^3 + max_iter n n_bits^2).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import ITQ
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> plain = ITQ(16, random_state=0).fit(X[:1000])
    >>> with_labels = ITQ(16, variant="cca", random_state=0).fit(X[:1000], y[:1000])
    >>> for hasher in (plain, with_labels):  # right digits among the ten nearest
    ...     items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    ...     print(round(precision_at(queries, items, y[1000:], y[:1000]), 1))
    0.8
    0.9
    """

    facts = Facts(
        paper="Gong, Lazebnik: Iterative Quantization, a Procrustean Approach to Learning Binary Codes",
        year=2011,
        labels="ignored",
        cost="n x features^2 + iterations x n x n_bits^2",
        max_bits="rank",
        sparse=True,
    )
    variants = (
        Variant(
            "ITQ CCA",
            {"variant": "cca"},
            {
                "paper": "Gong, Lazebnik, Gordo, Perronnin: Iterative Quantization: A Procrustean Approach to Learning "
                "Binary Codes for Large-Scale Image Retrieval (CCA-ITQ)",
                "year": 2013,
                "labels": "required",
                "max_bits": "any",
                "sparse": False,
            },
        ),
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        variant: Literal["pca", "cca"] = "pca",
        max_iter: int = 50,
        regularization: float = 0.1,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.variant = variant
        self.max_iter = max_iter
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> ITQ:
        """Learn directions and rotation; y, one class per row, is read only by ``variant="cca"``."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        max_iter = check_integer(self.max_iter, "max_iter", low=1)
        variant = check_choice(self.variant, "variant", ("pca", "cca"))
        regularization = check_number(self.regularization, "regularization", low=0, strict=True)
        X = check_rows(self, X, fitting=True, accept_sparse=variant == "pca")
        rng = check_random_state(self.random_state)
        if variant == "pca":
            directions, _ = required_directions(X, n_bits, "n_bits")
        else:
            labels = require_labels(self, y, len(X), n_classes=2)
            directions = canonical_directions(X, labels.index, regularization)[:n_bits]
        mean = column_means(X)
        embedded = _embedded(X, mean, directions)
        start = random_rotation(n_bits, rng)[: len(directions)]
        self.rotation_, self.objective_history_ = learn_rotation(embedded, start, max_iter)
        # Each alternation records two half-steps; the last one may stop after the codes.
        self.n_iter_ = (len(self.objective_history_) + 1) // 2
        components = project(self.rotation_.T, directions.T)
        self.components_ = components.astype(X.dtype)
        self.intercept_ = -project(components, mean[None])[:, 0].astype(X.dtype)
        return self


def _embedded(X: np.ndarray | csr_array, mean: np.ndarray, directions: np.ndarray) -> np.ndarray:
    if issparse(X):
        offset = -project(directions, mean[None])[:, 0]
        return project(X, directions, offset).astype(np.float64)
    return project(X - mean.astype(X.dtype), directions).astype(np.float64)


def learn_rotation(embedded: np.ndarray, rotation: np.ndarray, max_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """Alternate codes and rotation from a given start; return the rotation and the loss per half-step.

    Parameters
    ----------
    embedded : array of shape (n_samples, n_directions), float64
    rotation : array of shape (n_directions, n_bits) with orthonormal rows
    """
    constant = len(embedded) * rotation.shape[1] + np.sum(embedded**2)
    history: list[float] = []
    codes: np.ndarray | None = None
    with single_threaded_blas():
        for _ in range(max_iter):
            rotated = embedded @ rotation
            previous, codes = codes, signs_of(rotated)
            history.append(constant - 2.0 * np.abs(rotated).sum())
            if previous is not None and np.array_equal(codes, previous):
                break
            left, gains, right = np.linalg.svd(embedded.T @ codes, full_matrices=False)
            rotation = left @ right
            history.append(constant - 2.0 * gains.sum())
    return rotation, np.array(history)


def canonical_directions(X: np.ndarray, classes: np.ndarray, regularization: float) -> np.ndarray:
    r"""Return canonical directions between rows and one-hot classes, each scaled by its correlation.

    Solves :math:`C_{xy} C_{yy}^+ C_{yx} w = \lambda^2 (C_{xx} + \rho I) w`. For one-hot classes the left
    matrix is the between-class scatter :math:`M^\top M`, whose G rows are
    :math:`\sqrt{n_g / N}\,(\bar x_g - \bar x)`, so one thin SVD gives all directions.

    Returns
    -------
    directions : array of shape (n_directions, n_features), n_directions <= n_classes - 1
    """
    counts = np.bincount(classes)
    centered = X - X.mean(axis=0, dtype=np.float64)
    class_sums = gram(np.eye(len(counts))[classes], centered)
    scatter = class_sums / np.sqrt(counts * len(X))[:, None]
    ridged = gram(centered) / len(X)
    mean_variance = np.trace(ridged) / len(ridged)
    ridged[np.diag_indices_from(ridged)] += regularization * (mean_variance if mean_variance > 0 else 1.0)
    with single_threaded_blas():
        factor = cholesky(ridged, lower=True)
        whitened = solve_triangular(factor, scatter.T, lower=True).T
        _, correlations, right = np.linalg.svd(whitened, full_matrices=False)
        directions = solve_triangular(factor, right.T, lower=True, trans="T").T
    # The class offsets sum to zero, so the last correlation of G classes is rounding.
    n_kept = min(len(counts) - 1, int(np.count_nonzero(correlations > 1e-9)))
    return positive_peaks(correlations[:n_kept, None] * directions[:n_kept])


class RandomRotation(LinearHasher):
    r"""Rotate the n_bits principal components at random, so that all bits carry the same amount, and take signs.

    .. math:: h(x) = \mathrm{sign}(R P (x - \bar x)), \qquad R R^\top = I

    with the principal directions P. This is the start of :class:`ITQ` (Gong and Lazebnik 2011, there called PCA-RR),
    and much of its gain over :class:`PCAHash`. O(n d min(n, d)) to fit.

    Parameters
    ----------
    n_bits : int, default=32
        At most the rank of the centered rows.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_bits, n_features)
    intercept_ : array of shape (n_bits,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import RandomRotation
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = RandomRotation(16, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.6  # right digits among the ten nearest
    True
    """

    facts = Facts(
        paper="Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes (PCA-RR)",
        year=2011,
        labels="ignored",
        cost="n x features x min(n, features)",
        max_bits="rank",
        sparse=True,
    )

    def __init__(self, n_bits: int = 32, *, n_jobs: int | None = None, random_state: Seed = None) -> None:
        self.n_bits = n_bits
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> RandomRotation:
        """Compute the principal directions and draw the rotation; y is ignored."""
        n_bits = check_integer(self.n_bits, "n_bits", low=1)
        X = check_rows(self, X, fitting=True, accept_sparse=True)
        directions, _ = required_directions(X, n_bits, "n_bits")
        rotation = random_rotation(n_bits, check_random_state(self.random_state))
        components = project(rotation, directions.T)
        self.components_ = components.astype(X.dtype)
        self.intercept_ = -project(components, column_means(X)[None])[:, 0].astype(X.dtype)
        return self
