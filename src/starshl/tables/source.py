"""What every kind of file offers to the reader of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from .locations import Location

__all__ = ["Cells", "Kind", "Rows", "Source"]

#: What a column holds. "cells" is text that may be anything, "vectors" one list of numbers per row.
Kind = Literal["cells", "floats", "numbers", "vectors", "lists", "other"]

Rows: TypeAlias = np.ndarray | sparse.csr_matrix
Cells: TypeAlias = list[Any] | np.ndarray


class Source(Protocol):
    """An open file with columns; arrays of an .npz count as columns."""

    @property
    def path(self) -> Location: ...

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The columns in their order; numbers as text where the file has no names."""
        ...

    @property
    def has_names(self) -> bool:
        """Whether a model that was fitted on names can find its features here."""
        ...

    @property
    def default_labels(self) -> str:
        """The column that holds labels unless an option names another."""
        ...

    @property
    def default_vectors(self) -> str | None:
        """The column that holds vectors unless an option names another; None if any column may."""
        ...

    def describe(self, name: str) -> str:
        """Return the type of a column in words of the file's format."""
        ...

    def position_of(self, name: str) -> str:
        """Return the column that a name means, such as the last one for -1; unknown names come back unchanged."""
        ...

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows | None, Mapping[str, Cells]]:
        """Read the features as one matrix (None if there are none) and each other column by itself."""
        ...
