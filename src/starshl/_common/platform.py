"""What operating systems do differently: locks, flushing, memory maps, and what they tell about the machine.

Nothing here fails to import anywhere. Linux is what tests cover; the other branches are short for that reason.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

try:
    import fcntl
except ImportError:  # Windows, and Python in a browser
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

_MEMORY, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_CLEAR_REFS, _PROCESSORS = Path("/proc/self/clear_refs"), Path("/proc/cpuinfo")


def user_cache() -> Path:
    """Return the folder for what this user can make or download again; it may not exist yet."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        base = Path(named)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "starshl"


def open_file(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as bytes, without buffers; return its handle, which other programs do not inherit."""
    # The system applies the umask to 0o666. Asking for the umask means setting it, for all threads at once.
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)


def write_at(handle: int, content: bytes | memoryview, position: int) -> int:
    """Write to a position in a file that no other thread writes to; return how many bytes were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, content, position)
    os.lseek(handle, position, os.SEEK_SET)
    return os.write(handle, content)


def sync_content(handle: int) -> None:
    """Flush what was written into a file to the disk; its times may follow later."""
    # Where there is no fdatasync, fsync does the same and a little more.
    getattr(os, "fdatasync", os.fsync)(handle)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush the names in a folder to the disk: without it, a power cut may undo a renaming."""
    if (handle := open_folder(folder)) is None:
        return  # Windows writes names to its own journal
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_file(path: str | os.PathLike[str]) -> int:
    """Lock a file, made if it is missing; return the handle whose closing ends the lock.

    The system ends it, too, when the process ends, however it ends. BlockingIOError is raised if another process holds
    it, or another handle of this one. Where there are neither locks of POSIX nor of Windows, there is one process only.
    """
    return _locked(open_file(path, os.O_RDWR | os.O_CREAT))


def lock_folder(folder: Path) -> int:
    """Lock a folder like :func:`lock_file`; nothing appears in it."""
    handle = open_folder(folder)
    return lock_file(folder.with_name(f".{folder.name}.lock")) if handle is None else _locked(handle)


def _locked(handle: int) -> int:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            _lock_first_byte(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _lock_first_byte(handle: int) -> None:
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except PermissionError as error:  # what Windows says of a byte that another one has locked
        raise BlockingIOError(error.errno, error.strerror) from error


def open_folder(folder: str | os.PathLike[str]) -> int | None:
    """Return a handle of a folder, None where the system does not open folders."""
    return None if os.name == "nt" else os.open(folder, os.O_RDONLY)


def map_file(handle: int, n_bytes: int = 0, *, private: bool = False) -> mmap.mmap:
    """Map the first bytes of a file into memory, all of them if ``n_bytes`` is 0: pages are read when they are used.

    Into a ``private`` map one may write; that never reaches the file.
    """
    return mmap.mmap(handle, n_bytes, access=mmap.ACCESS_COPY if private else mmap.ACCESS_READ)


def is_file_map(array: np.ndarray) -> TypeGuard[np.memmap[Any, Any]]:
    """Tell whether an array is the whole of what NumPy mapped from a file, not a part of it."""
    return isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap)


def release_pages(array: np.ndarray) -> None:
    """Give back the memory of pages that were read through a map; they are read again when they are needed.

    Without it, they count as memory of the process until other processes ask for it.
    """
    if getattr(array, "mode", None) != "r":  # of other maps, this might undo what was written into them
        return
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(base, "madvise"):
        base.madvise(mmap.MADV_DONTNEED)


def available_bytes() -> int | None:
    """Return the memory that can be used without swapping, or None where the system does not tell."""
    return _kilobytes(_MEMORY, "MemAvailable:")


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
    memory, can_tell = PeakMemory(), False
    with suppress(OSError):
        _CLEAR_REFS.write_text("5")
        can_tell = True
    try:
        yield memory
    finally:
        if can_tell:
            memory.peak_bytes = _kilobytes(_STATUS, "VmHWM:")


def machine() -> dict[str, str | int | None]:
    """Return the kind of machine: system, processor, cores and memory."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": next(_values(_PROCESSORS, "model name"), platform.processor() or "unknown"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _total_memory(),
    }


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _kilobytes(file: Path, name: str) -> int | None:
    """Return the bytes of an entry that a file of the system counts in kilobytes."""
    value = next(_values(file, name), None)
    return None if value is None else 1024 * int(value.split()[0])


def _values(file: Path, name: str) -> Iterator[str]:
    """Yield the values of all entries of a name in a file of the system."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith(name):
            yield line.partition(":")[2].strip()
