"""A place where compiled loops are kept, on machines that have none.

Numba keeps them beside the source files or, where these cannot be written to, in the user's cache. Without either, as
in a container that may write nowhere but to its folder for temporary files, it refuses to import a single loop.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_VARIABLE = "NUMBA_CACHE_DIR"


def provide_loop_cache(package: Path) -> None:
    """Let Numba keep compiled loops in a new folder until this process ends, if it would find no place for them."""
    if os.environ.get(_VARIABLE) or _is_writable(package / "__pycache__") or _is_writable(_user_cache()):
        return
    # New and for this user alone: what is in it will be run.
    folder = tempfile.mkdtemp(prefix="starshl-loops-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_VARIABLE] = folder
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = folder


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path("~/Library/Caches/numba").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~")).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "numba"


def _is_writable(folder: Path) -> bool:
    with suppress(OSError, RuntimeError):
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    return False
