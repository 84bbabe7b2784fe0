"""Measure time and peak memory of a run, and describe versions and the kind of machine, without its name."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from numba.core.event import install_timer

from .._shared_work import seconds_saved
from .._version import __version__

__all__ = ["PeakMemory", "Stopwatch", "machine", "peak_memory", "versions"]

_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(slots=True)
class Stopwatch:
    """Wall seconds by stage, as if each run were alone: what it shares with others counts in full.

    Compiling loops happens once per machine and is counted separately, as "compile".
    """

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the block."""
        compiling: list[float] = []
        start = time.perf_counter() + seconds_saved()
        try:
            with install_timer("numba:compile", compiling.append):
                yield
        finally:
            self.seconds[name] = max(0.0, time.perf_counter() - start + seconds_saved() - sum(compiling))
            if compiling:
                self.seconds["compile"] = self.seconds.get("compile", 0.0) + sum(compiling)


@dataclass(slots=True)
class PeakMemory:
    """``peak_bytes`` is the most memory that was resident, None if the system does not report it."""

    peak_bytes: int | None = None


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Measure the peak resident memory of this process within the block.

    Linux can reset its high-water mark. Elsewhere nothing is reported: the only figure available is the peak since
    the process started, which says nothing about this block.
    """
    memory = PeakMemory()
    can_tell = _reset_high_water_mark()
    try:
        yield memory
    finally:
        if can_tell:
            memory.peak_bytes = _high_water_mark()


def _reset_high_water_mark() -> bool:
    try:
        _CLEAR_REFS.write_text("5")
        return _high_water_mark() is not None
    except OSError:
        return False


def _high_water_mark() -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that decide its numbers."""
    libraries = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "python": platform.python_version(),
        "starshl": __version__,
        **{name: version(name) for name in libraries},
    }


def machine() -> dict[str, str | int | None]:
    """Return the kind of machine: system, processor, cores and memory."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _total_memory(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
