"""Picture files, read one by one in threads: their rows, their previews, and which of them cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._progress import row_progress
from .._threads import run_all, tiles
from .._words import counted
from ..exceptions import PictureError
from ..features import open_picture, preview_of
from ..features.picture_files import PREVIEW_SIDE
from .folders import PictureFile
from .summary import Skipped

__all__ = ["BATCH", "labels_of", "read_pictures"]

BATCH = 64  # pictures whose features are computed together


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
        image = open_picture(file.path, side=_decoded_side(steps[0]))
    except PictureError as error:
        return str(error).replace(repr(str(file.path)), repr(file.reference))
    except OSError as error:
        return f"{file.reference!r} cannot be opened ({error.strerror}). Check its permissions."
    row: Any = [image]
    for step in steps:
        row = step.transform(row)
    return row[0], preview_of(image)


def labels_of(files: Sequence[PictureFile]) -> np.ndarray | None:
    """Return the labels that subfolders give to pictures, None if they give none."""
    names = [file.label for file in files]
    return None if all(name is None for name in names) else np.array(names, dtype=object)


def _decoded_side(step: Any) -> int | None:
    """Return how large a picture must be for a step and for a preview, None if the step does not say."""
    side = getattr(step, "side", None)
    return max(side, PREVIEW_SIDE) if isinstance(side, int) else None
