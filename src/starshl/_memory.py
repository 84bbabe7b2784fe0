"""Memory: refuse work that would make the machine swap, before it starts, and use what was taken again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["Scratch", "available_bytes", "require_memory"]

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Return the memory that can be used without swapping, or None where the system does not tell."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else None


def require_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise MemoryError if ``n_bytes`` are not available; the message names the work and a way out."""
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 2**30:.1f} GiB, and {available / 2**30:.1f} GiB are available. {advice}"
        )


class Scratch:
    """Square matrices handed out and taken back, because touching fresh memory can take longer than filling it."""

    def __init__(self):
        self._idle: list[np.ndarray] = []

    @contextmanager
    def matrix(self, n_rows: int, dtype: np.dtype, advice: str) -> Iterator[np.ndarray]:
        """Lend an uninitialized (n_rows, n_rows) matrix, or raise MemoryError with some advice."""
        n_entries = n_rows * n_rows
        try:
            flat = self._idle.pop()
        except IndexError:
            flat = np.empty(0, dtype=dtype)
        if len(flat) < n_entries:
            del flat
            require_memory(n_entries * np.dtype(dtype).itemsize, f"A kernel matrix of {n_rows:,} rows", advice)
            flat = np.empty(n_entries, dtype=dtype)
        try:
            yield flat[:n_entries].reshape(n_rows, n_rows)
        finally:
            self._idle.append(flat)
