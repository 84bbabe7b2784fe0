"""From a folder of pictures to a collection: files, features, codes and previews; and more pictures for one."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._common.progress import row_progress, status
from ..._common.threads import run_all, tiles
from ..._common.words import counted
from ...data.features.embedder import Embedder, Given, as_embedder
from ...data.features.picture_files import PREVIEW_SIDE, ReadPictures, open_picture, preview_of
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
from .picture_folders import (
    JOURNAL,
    SPLIT,
    FolderRule,
    LabelsFrom,
    PictureFile,
    check_labels_from,
    check_level,
    collect_pictures,
    find_pictures,
    folder_labels,
    split_metadata,
)

BATCH = 64  # pictures whose features are computed together


def import_pictures(
    pictures: str | os.PathLike[str],
    collection: str | os.PathLike[str],
    *,
    labels_from: LabelsFrom = "inner",
    embedder: str | Given = "pixels",
    n_bits: int | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ImportSummary:
    """Make a collection of all pictures in a folder, completely or not at all.

    JPEG, PNG, WebP, GIF, BMP and TIFF files are read. The name of a subfolder is the label of the pictures in it;
    pictures at the top have none. Folders named train, test, val, valid, validation or dev, in any case, are splits
    where two of them are in the same folder, and elsewhere at that level: they give no label, and do not count as
    levels; items have them as ``split`` in their metadata. One such folder alone may be a class. Files that cannot be
    read are skipped and listed. The collection remembers all this for :func:`add_pictures`, and where the folder is.

    Parameters
    ----------
    pictures : path of the folder
    collection : path of the new collection
    labels_from : {"inner", "outer", "path"} or int, default="inner"
        Which of several nested folders is the label: the innermost one, the outermost one, all of them as one path, or
        the one at a level, where 1 is the outermost; a picture above that level takes its innermost folder. A level
        that is deeper than all folders is refused.
    embedder : str, Embedder, function or transformer, default="pixels"
        What makes vectors of pictures: a name of :func:`starshl.data.features.make_embedder`, such as
        "efficientnet-lite0" for photographs, or your own. If it learns, it learns from these pictures.
    n_bits : int, default=None
        Length of the codes; None is 32, or as many as the vectors allow.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. The collection does not depend on it.
    progress : bool, default=False
        Show a bar on standard error.
    """
    start = time.perf_counter()
    check_new(collection)
    check_labels_from(labels_from)
    files, n_others = find_pictures(pictures)
    check_level(files, labels_from)
    made = as_embedder(embedder, "pictures")
    rows, previews, kept, skipped = read_pictures(files, made, n_jobs, progress=progress)
    named, splits = folder_labels(kept, labels_from), split_metadata(kept)
    with status("learning features", shown=progress):
        X = made.learn(rows)
    summary = build_collection(
        collection,
        "pictures",
        X,
        named.labels,
        start=start,
        features=made.name,
        n_bits=n_bits,
        embedder=made,
        fields=None if splits is None else {SPLIT: str},
        metadata=splits,
        references=[file.reference for file in kept],
        previews=previews,
        entry=(JOURNAL, FolderRule.of(labels_from, files).text),
        progress=progress,
    )
    return replace(
        summary,
        skipped=tuple(skipped),
        n_other_files=n_others,
        n_folder_levels=named.n_levels,
        folders=named.sentence,
    )


def add_pictures(
    collection: Collection,
    pictures: Sequence[str | os.PathLike[str]],
    *,
    labels: bool = True,
    labels_from: LabelsFrom | None = None,
    allow_duplicates: bool = False,
    update_labels: bool = False,
    keep_labels: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> AdditionSummary:
    """Add pictures to a collection of pictures, all that can be read or none.

    Pictures that are there already, with the same path in their folder and the same preview, are not stored again. If
    one of them has another label than its folder says, nothing is stored, unless you say what to do. Ids continue from
    the highest one, one per picture that could be read, in the order of the paths; pictures that are there already
    leave gaps.

    Parameters
    ----------
    collection : Collection, open for writing
    pictures : list of paths
        Files, and folders as in :func:`import_pictures`.
    labels : bool, default=True
        Whether the name of a subfolder is the label of the pictures in it.
    labels_from : as in :func:`import_pictures`, or None, default=None
        None is the rule by which the first pictures of the collection got their labels.
    allow_duplicates : bool, default=False
        Store pictures that are there already once more.
    update_labels : bool, default=False
        Give pictures that are there already the label of their folder.
    keep_labels : bool, default=False
        Leave pictures that are there already the label that they have.
    n_jobs, progress : as in :func:`import_pictures`
    """
    embedder = embedder_for(collection, "pictures")
    rule = FolderRule.read(collection.journal(JOURNAL))
    if labels_from is not None:
        check_labels_from(labels_from)
    files, n_others = collect_pictures(pictures, rule.split_levels)
    if labels_from is not None:
        check_level(files, labels_from)
    rows, previews, kept, skipped = read_pictures(files, embedder, n_jobs, progress=progress)
    named = folder_labels(kept, rule.labels_from if labels_from is None else labels_from)
    placed = rule.with_places_of(kept)
    with nullcontext() if placed == rule else collection.journaling(JOURNAL, placed.text):
        added = add_items(
            collection,
            embedder.finish(rows),
            labels=named.labels if labels else None,
            metadata=split_metadata(kept),
            references=[file.reference for file in kept],
            previews=previews,
            allow_duplicates=allow_duplicates,
            update_labels=update_labels,
            keep_labels=keep_labels,
        )
    return replace(
        added,
        skipped=tuple(skipped),
        n_other_files=n_others,
        n_folder_levels=named.n_levels if labels else 0,
        folders=named.sentence if labels else "",
    )


def read_pictures(
    files: Sequence[PictureFile], embedder: Embedder, n_jobs: int | None, *, progress: bool
) -> tuple[np.ndarray, list[bytes], list[PictureFile], list[Skipped]]:
    """Return what an embedder reads in all readable files, their previews, these files, and the others."""
    rows: list[np.ndarray] = []
    previews: list[bytes] = []
    kept: list[PictureFile] = []
    skipped: list[Skipped] = []
    side = _decoded_side(embedder)
    with row_progress("reading pictures", len(files), shown=progress) as report:
        for batch in tiles(len(files), BATCH):
            opened = run_all([partial(_open, file, side) for file in files[batch]], n_jobs)
            pictures = []
            for file, result in zip(files[batch], opened, strict=True):
                if isinstance(result, str):
                    skipped.append(Skipped(file.reference, result))
                    continue
                pictures.append(result[0])
                previews.append(result[1])
                kept.append(file)
            if pictures:
                rows.append(embedder.read(pictures, n_jobs=n_jobs))
            report(len(opened))
    if not kept:
        raise ValueError(f"None of {counted(len(files), 'picture')} could be read. The first: {skipped[0].reason}")
    return np.concatenate(rows), previews, kept, skipped


def _open(file: PictureFile, side: int | None) -> tuple[Any, bytes] | str:
    """Return a picture and its preview, or the reason why it cannot be read."""
    try:
        image = open_picture(file.path, side=side, name=repr(file.reference))
    except PictureError as error:
        return str(error)
    except OSError as error:
        return f"{file.reference!r} cannot be opened ({error.strerror}). Check its permissions."
    return image, preview_of(image)


def _decoded_side(embedder: Embedder) -> int | None:
    """Return how large a picture must be for an embedder and for a preview, None if the embedder does not say."""
    first = embedder.steps[0]
    return max(first.side, PREVIEW_SIDE) if isinstance(first, ReadPictures) else None
