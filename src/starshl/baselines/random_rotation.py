"""PCA-RR: signs of randomly rotated principal components (Gong and Lazebnik 2011)."""

from __future__ import annotations

from sklearn.utils.validation import check_random_state

from .._types import LabelsLike, SamplesLike, Seed
from .._validation import check_integer, check_rows
from ..base import LinearHasher, all_or_nothing
from ..facts import Facts
from ..linalg import column_means, project, random_rotation, required_directions

__all__ = ["RandomRotation"]


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
    >>> from starshl.baselines import RandomRotation
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
