"""What a lesson computes of its items once, kept as files in the folder of the collection for the next start.

Each file holds arrays and a checksum, never code, and names what it was computed from: the ids, the rows, and the
version of this package. A file that is damaged or about anything else counts as missing. Names begin with a dot, so
snapshots leave these files out; they can be deleted at any time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .._digest import array_digest
from .._version import __version__
from ..bundle import read_bundle, write_bundle
from ..exceptions import BundleFormatError

__all__ = ["KeptArrays", "origin_of"]

_log = logging.getLogger(__name__)


def origin_of(ids: np.ndarray, rows: np.ndarray, settings: Mapping[str, object]) -> str:
    """Return a digest of everything that neighbors and maps are computed from."""
    about = json.dumps({"version": __version__, **settings}, sort_keys=True)
    return array_digest({"ids": ids, "rows": rows}, head=about)


class KeptArrays:
    """Files of arrays in one folder, all computed from the same rows."""

    def __init__(self, folder: Path, origin: str) -> None:
        self._folder = folder
        self._origin = origin

    def read(self, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays of a file; None if there is none, or not of these rows."""
        try:
            header, arrays = read_bundle(self._path(name))
        except (OSError, BundleFormatError):
            return None
        return arrays if header.get("origin") == self._origin else None

    def write(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays to a file that is complete or absent; a folder without room or right is no error."""
        path = self._path(name)
        try:
            for left in self._folder.glob(f".{path.name}.*.partial"):  # by a process that was killed
                left.unlink(missing_ok=True)
            write_bundle(path, {"kind": "lesson", "origin": self._origin}, arrays)
        except OSError as error:
            _log.warning("%s could not be kept: it is computed again at the next start", path, exc_info=error)

    def _path(self, name: str) -> Path:
        return self._folder / f".lesson-{name}.star"
