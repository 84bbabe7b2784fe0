"""Types that signatures all over the package share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

__all__ = ["LabelsLike", "Rows", "SamplesLike", "Seed"]

SamplesLike: TypeAlias = ArrayLike | csr_array | Sequence[Any]
"""What users pass as X: anything NumPy reads as a matrix, a table, sparse rows, or objects that a kernel compares."""

LabelsLike: TypeAlias = ArrayLike | None
"""What users pass as y: one label per sample, or None."""

Rows: TypeAlias = np.ndarray | csr_array
"""X after the checks: a matrix of numbers, dense or sparse."""

Seed: TypeAlias = int | np.random.RandomState | None
"""What users pass as ``random_state``."""
