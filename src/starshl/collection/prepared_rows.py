"""Rows of a table, which hold more than numbers: a collection keeps them as the steps of its hasher leave them."""

from __future__ import annotations

from copy import copy
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags

from .._types import SamplesLike
from ..base import BaseHasher
from ..features import PreparedHasher
from .quantization import dense_rows

__all__ = ["kept_rows", "kept_width", "rewrapped", "same_steps", "takes_cells", "vector_hasher", "without_steps"]


def takes_cells(hasher: BaseHasher) -> bool:
    """Return whether a hasher takes rows of text and numbers, which its own steps turn into vectors."""
    return isinstance(hasher, PreparedHasher) and bool(hasher.steps) and get_tags(hasher).input_tags.string


def kept_width(hasher: BaseHasher) -> int | None:
    """Return how many numbers are kept of a row, None if the hasher was not fitted on rows of columns."""
    found = getattr(_inner(hasher), "n_features_in_", None)
    return None if found is None else int(found)


def vector_hasher(hasher: BaseHasher, X: SamplesLike) -> BaseHasher:
    """Return the hasher that takes X: the same without its steps if X are kept vectors of a hasher of cells."""
    if not takes_cells(hasher) or not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.ndim != 2:
        return hasher
    return without_steps(hasher) if X.shape[1] == kept_width(hasher) != hasher.n_features_in_ else hasher


def without_steps(hasher: BaseHasher) -> BaseHasher:
    """Return a hasher of kept vectors that makes the same codes, of the same space."""
    if not takes_cells(hasher):
        return hasher
    bare = cast(PreparedHasher, copy(hasher))
    bare.steps_, bare.n_features_in_ = [], cast(int, kept_width(hasher))
    vars(bare).pop("feature_names_in_", None)
    return bare


def kept_rows(hasher: BaseHasher, X: SamplesLike, n_columns: int) -> np.ndarray:
    """Return what is kept of rows, or compared with what is kept: a matrix of float64."""
    if not takes_cells(hasher) or vector_hasher(hasher, X) is not hasher:
        return dense_rows(X, n_columns)
    rows = cast(PreparedHasher, hasher).prepare(X)
    return dense_rows(rows.toarray() if sparse.issparse(rows) else rows, n_columns)


def rewrapped(present: BaseHasher, new: BaseHasher) -> BaseHasher:
    """Return a hasher of kept vectors behind the steps that made them, so that rows can still be asked for."""
    if takes_cells(present) and not takes_cells(new) and kept_width(new) == kept_width(present):
        return cast(PreparedHasher, present).with_hasher(new)
    return new


def same_steps(one: BaseHasher, other: BaseHasher) -> bool:
    """Return whether two hashers of cells share their fitted steps, so that they make the same vectors."""
    return getattr(one, "steps_", None) is getattr(other, "steps_", None)


def _inner(hasher: BaseHasher) -> Any:
    return cast(PreparedHasher, hasher).hasher_ if takes_cells(hasher) else hasher
