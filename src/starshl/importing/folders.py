"""Picture files in a folder: which there are, and what their subfolders say about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..features.picture_files import ENDINGS, is_picture_file

__all__ = ["PictureFile", "collect_pictures", "find_pictures"]

_NOT_READ = (".heic", ".heif", ".avif", ".jp2", ".svg")


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file, its path within the folder, and the name of the subfolder it is in, None at the top."""

    path: Path
    reference: str
    label: str | None


def find_pictures(folder: str | os.PathLike[str]) -> tuple[list[PictureFile], int]:
    """Return the picture files of a folder and its subfolders in the order of their paths, and how many others it has.

    Hidden files and folders are ignored, and links to folders are not followed. Pictures that cannot be read, such as
    HEIC files, are among the picture files: somebody who has put them there wants to know.
    """
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"There is no folder {str(root)!r}. Give a folder of pictures.")
    if not root.is_dir():
        raise NotADirectoryError(f"{str(root)!r} is a file. Give the folder that it is in.")
    found, n_others = [], 0
    for parent, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith("."):
                continue
            if is_picture_file(path) or path.suffix.lower() in _NOT_READ:
                found.append(_described(path, root))
            else:
                n_others += 1
    if not found:
        raise ValueError(
            f"There is no picture in {str(root)!r} or its subfolders; {n_others:,} of its files are of other kinds. "
            f"Pictures are files that end in {', '.join(ENDINGS)}. Give a folder of pictures."
        )
    return found, n_others


def collect_pictures(paths: Sequence[str | os.PathLike[str]]) -> tuple[list[PictureFile], int]:
    """Return the picture files of folders, and files that are given by name, which have no label; and others' count."""
    found: list[PictureFile] = []
    n_others = 0
    for path in map(Path, paths):
        if path.is_dir():
            more, n_more = find_pictures(path)
            found, n_others = found + more, n_others + n_more
        elif not path.exists():
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}. Give pictures, or a folder of them.")
        elif not is_picture_file(path):
            raise ValueError(
                f"{str(path)!r} is not a picture by its name. Pictures are files that end in {', '.join(ENDINGS)}. "
                "Give pictures, or a folder of them."
            )
        else:
            found.append(PictureFile(path, _as_text(path.name), None))
    return found, n_others


def _described(path: Path, root: Path) -> PictureFile:
    parts = [_as_text(part) for part in path.relative_to(root).parts]
    return PictureFile(path, "/".join(parts), parts[0] if len(parts) > 1 else None)


def _as_text(name: str) -> str:
    """Return a file name as text; one that is not UTF-8 gets marks where it cannot be read."""
    return os.fsencode(name).decode("utf-8", "replace")


def _refuse(error: OSError) -> None:
    raise error
