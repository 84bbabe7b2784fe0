"""What to do where somebody names something that is not a collection: which command makes one of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["no_collection_among"]

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def no_collection_among(folders: Sequence[Path]) -> str | None:
    """Return what to say about the first of these that is not a collection, None if all are."""
    from ..collection.session import DATABASE

    for folder in folders:
        if not (folder / DATABASE).is_file():
            return f"{_what_it_is(folder)} {_how_to_make_one(folder)}"
    return None


def _what_it_is(path: Path) -> str:
    if not path.exists():
        return f"There is no folder {str(path)!r}."
    kind = "a folder of pictures" if _has_pictures(path) else "a folder" if path.is_dir() else "a file"
    return f"{str(path)!r} is {kind}, not a collection."


def _how_to_make_one(path: Path) -> str:
    given, ending = str(path), path.suffix.lower()
    if _has_pictures(path):
        return f"Make one of it with `starshl images {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending in (".npy", ".npz"):
        return f"Make one of it with `starshl vectors {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending == ".txt":
        return f"Make one of it with `starshl texts {given} -o COLLECTION`, then give COLLECTION instead."
    if path.is_file() and ending in _TABLES:
        return (
            f"Make one of it with `starshl texts {given} --text COLUMN -o COLLECTION`, or, if its columns are numbers, "
            f"with `starshl vectors {given} -o COLLECTION`, then give COLLECTION instead."
        )
    return (
        "To make a collection: `starshl images FOLDER -o COLLECTION` for pictures, `starshl texts FILE -o COLLECTION` "
        "for texts, `starshl vectors FILE -o COLLECTION` for vectors."
    )


def _has_pictures(path: Path) -> bool:
    """Return whether a folder holds a picture, itself or in one of its subfolders."""
    from ..features.picture_files import is_picture_file

    if not path.is_dir():
        return False
    return any(is_picture_file(file) for pattern in ("*", "*/*") for file in path.glob(pattern))
