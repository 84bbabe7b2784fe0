"""What benchmarks share: times and memory of this process, and tables of figures."""

from __future__ import annotations

import resource
import time

__all__ = ["peak_gib", "show", "timed"]


def timed(action):
    """Return the result, wall seconds and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def peak_gib():
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def show(columns, *rows):
    """Print a table, its columns aligned to the right."""
    widths = [max(len(str(row[k])) for row in (columns, *rows)) for k in range(len(columns))]
    for row in (columns, *rows):
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)), flush=True)
