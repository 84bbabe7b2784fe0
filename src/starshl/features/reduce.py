"""Reduce: many features become the few directions in which rows differ most, with every view counting the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from .._types import LabelsLike, SamplesLike
from .._validation import check_integer
from ..linalg import principal_directions, project
from .step import Step

__all__ = ["Reduce"]


class Reduce(Step):
    """Project rows on their main directions (a truncated singular value decomposition of the centered rows).

    Features of several kinds come as views, such as the pixels and the colors of pictures. Each view is centered and
    divided by the root of its mean squared length first, so that no kind drowns the others.

    Parameters
    ----------
    n_components : int, default=256
        Number of features, fewer if rows differ in fewer directions.
    view_sizes : list of int, default=None
        How many columns each view has, in their order; None is one view.
    max_rows : int, default=2000
        Learn from at most this many rows, chosen at random.
    random_state : int, default=0
        Chooses these rows.

    Attributes
    ----------
    components_ : array of shape (n_features_out_, n_features_in_), the directions, times the weight of each view
    intercept_ : array of shape (n_features_out_,)

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.features import Reduce
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0]])
    >>> Reduce().fit_transform(X).tolist()
    [[-1.0], [1.0]]
    """

    components_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        n_components: int = 256,
        *,
        view_sizes: Sequence[int] | None = None,
        max_rows: int = 2000,
        random_state: int = 0,
    ):
        self.n_components = n_components
        self.view_sizes = view_sizes
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: SamplesLike, y: LabelsLike = None) -> Self:
        """Learn the mean, the weight of each view and the main directions."""
        n_components = check_integer(self.n_components, "n_components", low=1)
        max_rows = check_integer(self.max_rows, "max_rows", low=1)
        rows = self._rows(X, fitting=True)
        if len(rows) > max_rows:
            chosen = check_random_state(self.random_state).permutation(len(rows))[:max_rows]
            rows = rows[np.sort(chosen)]
        rows = rows.astype(np.float64)
        mean = rows.mean(axis=0)
        weights = self._weights(rows - mean)
        directions, _ = principal_directions(rows * weights, n_components)
        if not len(directions):
            # All rows are the same: one direction, along which nothing differs.
            directions = np.eye(1, rows.shape[1])
        components = directions * weights
        self.components_ = components.astype(np.float32)
        self.intercept_ = -(self.components_.astype(np.float64) @ mean).astype(np.float32)
        self.n_features_out_ = len(components)
        return self

    def transform(self, X: SamplesLike) -> np.ndarray:
        """Return the rows along the main directions, in the dtype of X."""
        check_is_fitted(self)
        return project(self._rows(X, fitting=False), self.components_, self.intercept_)

    def _weights(self, centered: np.ndarray) -> np.ndarray:
        """Return the weight of each column, that of its view."""
        n_columns = centered.shape[1]
        given = [n_columns] if self.view_sizes is None else self.view_sizes
        sizes = [check_integer(size, "view_sizes", low=1) for size in given]
        if sum(sizes) != n_columns:
            raise ValueError(
                f"view_sizes is {list(sizes)}, which makes {sum(sizes)} columns; X has {n_columns}. Give the size of "
                "each view, in their order."
            )
        views = np.split(centered, np.cumsum(sizes)[:-1], axis=1)
        lengths = [np.sqrt(np.mean(np.sum(view**2, axis=1))) for view in views]
        return np.repeat([1.0 / length if length > 0 else 0.0 for length in lengths], sizes)

    def _rows(self, X: SamplesLike, *, fitting: bool) -> np.ndarray:
        return validate_data(self, X, reset=fitting, dtype=[np.float64, np.float32])

    def _check_restored(self) -> None:
        self._require_counts()
        self._require_numbers("components_", (self.n_features_out_, self.n_features_in_))
        self._require_numbers("intercept_", (self.n_features_out_,))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
