"""A data set in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Dataset"]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows, labels and facts about them.

    Attributes
    ----------
    name : str
    X : array of shape (n_samples, n_features)
        Values as published, without scaling, centering or shuffling.
    y : int64 array of shape (n_samples,)
        Class numbers, starting at 0.
    split : uint8 array of shape (n_samples,) or None
        The official split, if there is one: 0 = train, 1 = test.
    names : tuple of str
        Names of the classes, in the order of y.
    notes : tuple of str
        Remarks that matter for results, for example how the rows differ from those of the paper.
    extra : mapping
        Any other arrays of the file.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    split: np.ndarray | None
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name!r}, {rows:,} x {features:,} {self.X.dtype}, {self.n_classes} classes)"
