"""What every kind of file offers to the reader of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from scipy import sparse

__all__ = ["Cells", "Kind", "Rows", "Source"]

#: What a column holds. "cells" is text that may be anything, "vectors" one list of numbers per row.
Kind = Literal["cells", "floats", "numbers", "vectors", "lists", "other"]

Rows = np.ndarray | sparse.csr_matrix
Cells = list | np.ndarray


class Source(Protocol):
    """An open file with columns; arrays of an .npz count as columns."""

    path: Path
    #: The columns in their order; numbers as text where the file has no names.
    kinds: Mapping[str, Kind]
    #: Whether a model that was fitted on names can find its features here.
    has_names: bool
    #: The columns that hold labels and vectors unless an option names others.
    default_labels: str
    default_vectors: str | None

    def describe(self, name: str) -> str:
        """Return the type of a column in words of the file's format."""
        ...

    def position_of(self, name: str) -> str:
        """Return the column that a name means, such as the last one for -1; unknown names come back unchanged."""
        ...

    def read(
        self, features: Sequence[str], others: Sequence[str], *, allow_missing: bool
    ) -> tuple[Rows | None, dict[str, Cells]]:
        """Read the features as one matrix (None if there are none) and each other column by itself."""
        ...
