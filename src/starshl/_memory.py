"""Memory: refuse work that would make the machine swap, before it starts."""

from __future__ import annotations

from pathlib import Path

__all__ = ["available_bytes", "require_memory"]

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
