"""Hashers of several code lengths: from a single fit if the method can, and from one fit per length otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sklearn.base import clone

from ._types import LabelsLike, SamplesLike
from .base import BaseHasher

__all__ = ["at_length", "fit_lengths"]


def at_length(hasher: BaseHasher, n_bits: int) -> BaseHasher:
    """Return a copy that is not fitted and makes codes of this length."""
    name = "hasher__n_bits" if "hasher__n_bits" in hasher.get_params() else "n_bits"
    copy: BaseHasher = clone(hasher)
    return copy.set_params(**{name: n_bits})


def fit_lengths(
    hasher: BaseHasher,
    X: SamplesLike,
    y: LabelsLike,
    lengths: Sequence[int],
    fit: Callable[[BaseHasher, SamplesLike, LabelsLike], BaseHasher] = lambda hasher, X, y: hasher.fit(X, y),
) -> Iterator[BaseHasher]:
    """Fit a hasher for each length in turn; the given one must have the first. ``fit`` may do it elsewhere."""
    first = fit(hasher, X, y)
    yield first
    for n_bits in lengths[1:]:
        other = getattr(first, "with_bits", None)
        yield fit(at_length(first, n_bits), X, y) if other is None else other(n_bits)
