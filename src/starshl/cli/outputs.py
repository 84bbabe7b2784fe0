"""Where results go: checks before any work begins, and labels as files hold them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def check_output(
    path: Path, inputs: Iterable[str | Path | None] = (), *, suffixes: tuple[str, ...] | None = None
) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs under any name."""
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise ValueError(f"The output {str(path)!r} ends in {path.suffix!r}; it may be {', '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"The output {str(path)!r} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r} for the output {path.name!r}. Create it first.")
    for other in inputs:
        if other is not None and _is_same_file(path, Path(other)):
            raise ValueError(
                f"The output {str(path)!r} is the same file as the input {str(other)!r}, which it would overwrite. "
                "Choose another name."
            )
    _check_writable(path.parent)


def check_output_folder(path: Path) -> None:
    """Refuse a folder for results that cannot be made or written to."""
    present = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not present.is_dir():
        raise ValueError(f"{str(present)!r} is a file, so {str(path)!r} cannot be a folder. Choose another output.")
    _check_writable(present)


def _is_same_file(path: Path, other: Path) -> bool:
    # samefile sees through symbolic and hard links; a path that does not exist can only be the same by name.
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _check_writable(folder: Path) -> None:
    # Tried, not asked: permissions say nothing about the file systems in which no file can be made.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"The folder {str(folder)!r} cannot be written to. Choose another one, or change its permissions."
        ) from error


def without_objects(labels: np.ndarray) -> np.ndarray:
    """Return text labels as fixed-width text, unlabeled rows empty: arrays of objects would need pickle."""
    import numpy as np

    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if label is None or label != label else str(label) for label in labels], dtype=str)
