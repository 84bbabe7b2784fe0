"""From a folder of pictures to a collection: features, codes and previews."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from .._threads import tiles
from ..features import Extractor, NetworkFeatures, PictureFeatures, ReadPictures, Reduce
from ..features.efficientnet import SIDE
from .filling import check_new, fill_collection
from .folders import find_pictures
from .hashing import learn_hasher
from .reading import BATCH, labels_of, read_pictures
from .summary import ImportSummary

__all__ = ["import_pictures"]

_SIDE = 32  # pixels: thumbnails, because the plain features look at shapes and colors


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
    rows, previews, kept, skipped = read_pictures(files, first, n_jobs, progress=progress)
    extractor, X = _finish(first, rows, network=network)
    labels = labels_of(kept)
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
    for batch in tiles(len(rows), 16 * BATCH):
        part = rows[batch]
        for step in later:
            part = step.transform(part)
        parts.append(part)
    return Extractor("pictures", [*first, *later]), np.concatenate(parts)
