"""What a lesson leaves behind for other programs: labels as CSV, and a Parquet table for viewers of embeddings."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from .._common.files import write_atomically
from .._common.formulas import guarded
from .._common.labels import Label
from ..collection.collection import Collection
from .lesson import Lesson

_HEADER = ("id", "reference", "label", "source", "confidence")


def export_labels(collection: Collection, path: str | os.PathLike[str]) -> int:
    """Write the label of every item to a CSV file, given or guessed; return how many items there are.

    The columns are id, reference, label, source ("given" or "guessed") and confidence (1 if given, empty if too few
    labels were given to tell). The label of an item without a guess is empty. Text that a spreadsheet would take for a
    formula begins with an apostrophe, which the readers of this package take off again. The file is complete or absent.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEADER)
    items = collection.get(collection.ids)
    for item in items:
        is_given = item.label is not None
        label = item.guess.label if item.guess is not None else item.label
        confidence = item.guess.confidence if item.guess is not None else float(is_given)
        shown = label if isinstance(label, int) else guarded(_text(label))
        source = _source(label, is_given)
        sure = "" if confidence is None else f"{confidence:.4f}"
        writer.writerow([item.id, guarded(item.reference or ""), shown, source, sure])
    write_atomically(path, file.getvalue().encode())
    return len(items)


def export_atlas(lesson: Lesson, path: str | os.PathLike[str]) -> int:
    """Write a Parquet table that Embedding Atlas and other viewers open; return how many items there are.

    The columns are id, code (see :func:`starshl.index.adapters.write_parquet`), reference, label (as text), source,
    confidence, x and y in the unit square, and neighbors: ``{"ids": [...], "distances": [...]}``, nearest first and
    equally many for all items, in which ids are positions of rows in this file, from 0, as viewers count them::

        embedding-atlas lesson.parquet --x x --y y --neighbors neighbors
    """
    # Imported here because CSV must work without the library behind it.
    from ..index.adapters.parquet_table import write_parquet

    ids, labels, confidences, given = lesson.predictions()
    known = given | lesson.state().knows_confidence
    _, x, y = lesson.map()
    columns: dict[str, Any] = {
        "reference": [item.reference for item in lesson.collection.get(ids)],
        "label": [_text(label) or None for label in labels],
        "source": [_source(label, is_given) or None for label, is_given in zip(labels, given.tolist(), strict=True)],
        "confidence": [sure if is_known else None for sure, is_known in zip(confidences.tolist(), known, strict=True)],
        "x": x,
        "y": y,
        "neighbors": lesson.neighbors(),
    }
    write_parquet(path, lesson.collection.codes(ids), ids, columns)
    return len(ids)


def _text(label: Label | None) -> str:
    return "" if label is None else str(label)


def _source(label: Label | None, is_given: bool) -> str:
    return "" if label is None else "given" if is_given else "guessed"
