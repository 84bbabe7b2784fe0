"""Scratch: memory for the kernel matrices of active rows, used again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_GROWTH = 3  # times the entries of a matrix, so that others up to 70% larger fit, too


class Scratch:
    """Square matrices handed out and taken back, because touching fresh memory can take longer than filling it.

    ``limit`` is the largest size of one, in bytes.
    """

    def __init__(self, limit: float = float("inf")):
        self.limit = limit
        self._idle: list[np.ndarray] = []

    @contextmanager
    def matrix(self, n_rows: int, dtype: np.dtype) -> Iterator[np.ndarray]:
        """Lend an uninitialized (n_rows, n_rows) matrix, or raise MemoryError."""
        n_entries = n_rows * n_rows
        n_bytes = n_entries * np.dtype(dtype).itemsize
        if n_bytes > self.limit:
            raise MemoryError(
                f"The kernel matrix of {n_rows:,} active rows takes {n_bytes / 2**30:.2g} GiB, and max_memory leaves "
                f"{self.limit / 2**30:.2g} GiB to each thread. Use fewer rows, float32 rows (half as much), fewer "
                "threads (n_jobs) or a larger max_memory."
            )
        try:
            flat = self._idle.pop()
        except IndexError:
            flat = np.empty(0, dtype=dtype)
        if len(flat) < n_entries:
            # What lies beyond the matrix is not touched and takes no memory until a larger one needs it.
            flat = np.empty(_GROWTH * n_entries, dtype=dtype)
        try:
            yield flat[:n_entries].reshape(n_rows, n_rows)
        finally:
            self._idle.append(flat)
