"""From a folder of pictures to a collection: files, features, codes and previews; and more pictures for one."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._common.progress import row_progress
from ..._common.threads import run_all, tiles
from ..._common.words import counted
from ...data.features.embedder import Embedder
from ...data.features.network import SIDE, NetworkFeatures
from ...data.features.numeric import Reduce
from ...data.features.picture_files import (
    ENDINGS,
    PREVIEW_SIDE,
    ReadPictures,
    is_picture_file,
    open_picture,
    preview_of,
)
from ...data.features.pictures import PictureFeatures
from ...exceptions import PictureError
from ..collection import Collection
from .building import (
    AdditionSummary,
    ImportSummary,
    Skipped,
    add_items,
    build_collection,
    check_new,
    embedder_for,
)

_NOT_READ = (".heic", ".heif", ".avif", ".jp2", ".svg")
BATCH = 64  # pictures whose features are computed together
_SIDE = 32  # pixels: thumbnails, because the plain features look at shapes and colors


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file, its path within the folder, and the name of the subfolder it is in, None at the top."""

    path: Path
    reference: str
    label: str | None


def import_pictures(
    pictures: str | os.PathLike[str],
    collection: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    network: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ImportSummary:
    """Make a collection of all pictures in a folder, completely or not at all.

    JPEG, PNG, WebP, GIF, BMP and TIFF files are read. The name of a subfolder is the label of the pictures in it;
    pictures at the top have none. Files that cannot be read are skipped and listed.

    Parameters
    ----------
    pictures : path of the folder
    collection : path of the new collection
    n_bits : int, default=None
        Length of the codes; None is 32, or as many as the vectors allow.
    network : bool, default=False
        Describe pictures with a neural network trained on photographs (:class:`starshl.data.features.NetworkFeatures`)
        instead of with pixels, gradients and colors.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. The collection does not depend on it.
    progress : bool, default=False
        Show a bar on standard error.
    """
    start = time.perf_counter()
    check_new(collection)
    files, n_others = find_pictures(pictures)
    first: list[Any] = [ReadPictures(_SIDE).fit()]
    if network:
        first = [ReadPictures(SIDE, shape="center").fit(), NetworkFeatures().fit()]
    rows, previews, kept, skipped = read_pictures(files, first, n_jobs, progress=progress)
    embedder, X = _fit_features(first, rows, network=network)
    return build_collection(
        collection,
        "pictures",
        X,
        labels_of(kept),
        start=start,
        features="EfficientNet-Lite0" if network else f"pixels, gradients and colors of {_SIDE} x {_SIDE} pixels",
        n_bits=n_bits,
        embedder=embedder,
        references=[file.reference for file in kept],
        previews=previews,
        skipped=skipped,
        n_other_files=n_others,
    )


def _fit_features(first: list[Any], rows: np.ndarray, *, network: bool) -> tuple[Embedder, np.ndarray]:
    """Fit the steps that are learned; return the embedder, and the vectors of all pictures."""
    later: list[Any] = []
    sizes = None
    if not network:
        # Shown one white picture: black ones alone could be of any scale.
        features = PictureFeatures((_SIDE, _SIDE, 3)).fit(np.full((1, _SIDE, _SIDE, 3), 255, np.uint8))
        sizes = [view.stop - view.start for view in features.views.values()]
        later.append(features)
    reduce = Reduce(view_sizes=sizes)
    sample = rows
    if len(rows) > reduce.max_rows:
        sample = rows[np.linspace(0, len(rows) - 1, reduce.max_rows).astype(int)]
    for step in later:
        sample = step.transform(sample)
    later.append(reduce.fit(sample))
    parts = []
    for batch in tiles(len(rows), 16 * BATCH):
        part = rows[batch]
        for step in later:
            part = step.transform(part)
        parts.append(part)
    return Embedder("pictures", [*first, *later]), np.concatenate(parts)


def add_pictures(
    collection: Collection,
    pictures: Sequence[str | os.PathLike[str]],
    *,
    labels: bool = True,
    allow_duplicates: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> AdditionSummary:
    """Add pictures to a collection of pictures, all that can be read or none.

    Pictures that are there already, with the same path in their folder and the same preview, are not stored again.

    Parameters
    ----------
    collection : Collection, open for writing
    pictures : list of paths
        Files, and folders as in :func:`import_pictures`.
    labels : bool, default=True
        Whether the name of a subfolder is the label of the pictures in it.
    allow_duplicates : bool, default=False
        Store pictures that are there already once more.
    n_jobs, progress : as in :func:`import_pictures`
    """
    embedder = embedder_for(collection, "pictures")
    files, n_others = collect_pictures(pictures)
    rows, previews, kept, skipped = read_pictures(files, embedder.steps, n_jobs, progress=progress)
    known = labels_of(kept) if labels else None
    references = [file.reference for file in kept]
    added = add_items(
        collection, rows, labels=known, references=references, previews=previews, allow_duplicates=allow_duplicates
    )
    return replace(added, skipped=tuple(skipped), n_other_files=n_others)


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


def read_pictures(
    files: Sequence[PictureFile], steps: Sequence[Any], n_jobs: int | None, *, progress: bool
) -> tuple[np.ndarray, list[bytes], list[PictureFile], list[Skipped]]:
    """Return what the steps make of all readable files, their previews, these files, and the others."""
    rows: list[np.ndarray] = []
    previews: list[bytes] = []
    kept: list[PictureFile] = []
    skipped: list[Skipped] = []
    with row_progress("reading pictures", len(files), shown=progress) as report:
        for batch in tiles(len(files), BATCH):
            results = run_all([partial(_read_one, file, steps) for file in files[batch]], n_jobs)
            for file, result in zip(files[batch], results, strict=True):
                if isinstance(result, str):
                    skipped.append(Skipped(file.reference, result))
                    continue
                rows.append(result[0])
                previews.append(result[1])
                kept.append(file)
            report(len(results))
    if not kept:
        raise ValueError(f"None of {counted(len(files), 'picture')} could be read. The first: {skipped[0].reason}")
    return np.stack(rows), previews, kept, skipped


def _read_one(file: PictureFile, steps: Sequence[Any]) -> tuple[np.ndarray, bytes] | str:
    """Return what the steps make of a picture and its preview, or the reason why it cannot be read."""
    try:
        image = open_picture(file.path, side=_decoded_side(steps[0]), name=repr(file.reference))
    except PictureError as error:
        return str(error)
    except OSError as error:
        return f"{file.reference!r} cannot be opened ({error.strerror}). Check its permissions."
    row: Any = [image]
    for step in steps:
        row = step.transform(row)
    return row[0], preview_of(image)


def _decoded_side(step: Any) -> int | None:
    """Return how large a picture must be for a step and for a preview, None if the step does not say."""
    return max(step.side, PREVIEW_SIDE) if isinstance(step, ReadPictures) else None


def labels_of(files: Sequence[PictureFile]) -> np.ndarray | None:
    """Return the labels that subfolders give to pictures, None if they give none."""
    names = [file.label for file in files]
    return None if all(name is None for name in names) else np.array(names, dtype=object)
