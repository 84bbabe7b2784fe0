"""From a folder of pictures to a collection: features, codes and previews."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._progress import row_progress
from .._threads import run_all, tiles
from .._words import counted
from ..exceptions import PictureError
from ..features import Extractor, NetworkFeatures, PictureFeatures, ReadPictures, Reduce, open_picture, preview_of
from ..features.efficientnet import SIDE
from ..features.picture_files import PREVIEW_SIDE
from .filling import check_new, fill_collection
from .folders import PictureFile, find_pictures
from .hashing import learn_hasher
from .summary import ImportSummary, Skipped

__all__ = ["import_pictures"]

_SIDE = 32  # pixels: thumbnails, because the plain features look at shapes and colors
_BATCH = 64  # pictures whose features are computed together


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

    JPEG, PNG and WebP files are read. The name of a subfolder is the label of the pictures in it; pictures at the top
    have none. Files that cannot be read are skipped and listed.

    Parameters
    ----------
    pictures : path of the folder
    collection : path of the new collection
    n_bits : int, default=None
        Length of the codes; None is 32, or as many as the vectors allow.
    network : bool, default=False
        Describe pictures with a neural network trained on photographs (:class:`starshl.features.NetworkFeatures`)
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
    rows, previews, kept, skipped = _read_all(files, first, n_jobs, progress=progress)
    extractor, X = _finish(first, rows, network=network)
    labels = _labels([file.label for file in kept])
    learned = learn_hasher(X, labels, n_bits)
    fill_collection(
        collection,
        learned,
        X,
        labels,
        extractor=extractor,
        references=[file.reference for file in kept],
        previews=previews,
    )
    return ImportSummary(
        collection=os.fspath(collection),
        kind="pictures",
        n_items=len(kept),
        n_labeled=sum(file.label is not None for file in kept),
        classes=sorted({file.label for file in kept if file.label is not None}),
        features="EfficientNet-Lite0" if network else f"pixels, gradients and colors of {_SIDE} x {_SIDE} pixels",
        n_features=X.shape[1],
        method=type(learned.hasher).__name__,
        n_bits=learned.hasher.n_bits_,
        labels=learned.labels,
        choice=learned.choice,
        seconds=round(time.perf_counter() - start, 3),
        skipped=tuple(skipped),
        n_other_files=n_others,
    )


def _read_all(
    files: Sequence[PictureFile], first: list[Any], n_jobs: int | None, *, progress: bool
) -> tuple[np.ndarray, list[bytes], list[PictureFile], list[Skipped]]:
    """Return what the first steps make of all readable files, their previews, these files, and the others."""
    rows: list[np.ndarray] = []
    previews: list[bytes] = []
    kept: list[PictureFile] = []
    skipped: list[Skipped] = []
    with row_progress("reading pictures", len(files), shown=progress) as report:
        for batch in tiles(len(files), _BATCH):
            results = run_all([partial(_read_one, file, first) for file in files[batch]], n_jobs)
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


def _read_one(file: PictureFile, first: list[Any]) -> tuple[np.ndarray, bytes] | str:
    """Return what the first steps make of a picture and its preview, or the reason why it cannot be read."""
    try:
        image = open_picture(file.path, side=max(first[0].side, PREVIEW_SIDE))
    except PictureError as error:
        return str(error).replace(repr(str(file.path)), repr(file.reference))
    except OSError as error:
        return f"{file.reference!r} cannot be opened ({error.strerror}). Check its permissions."
    row: Any = [image]
    for step in first:
        row = step.transform(row)
    return row[0], preview_of(image)


def _finish(first: list[Any], rows: np.ndarray, *, network: bool) -> tuple[Extractor, np.ndarray]:
    """Fit the steps that are learned; return the extractor, and the vectors of all pictures."""
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
    for batch in tiles(len(rows), 16 * _BATCH):
        part = rows[batch]
        for step in later:
            part = step.transform(part)
        parts.append(part)
    return Extractor("pictures", [*first, *later]), np.concatenate(parts)


def _labels(names: list[str | None]) -> np.ndarray | None:
    if all(name is None for name in names):
        return None
    return np.array(names, dtype=object)
