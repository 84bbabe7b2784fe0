"""What a page shows of a row: its title, or its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np

from .._validation import check_integer

__all__ = ["check_picture_shape", "find_titles", "gray_pictures", "guess_picture_shape", "short_titles"]

# Fields of metadata that usually say what an item is, best first.
_USUAL_NAMES = ("title", "titles", "headline", "caption", "name", "text", "description", "filename", "file", "path")
_MOST_LETTERS = 160  # about two lines on the page
# Smaller squares are tables of a few measurements.
_LEAST_SIDE = 6
_LARGEST_GRAY = 255
_N_TRIED = 200  # rows that must look like pixels


def find_titles(
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    *,
    field: str | None = None,
) -> list[str] | None:
    """Return a short text for each row, None if there is none.

    ``field`` names a field of the metadata. None is one that usually holds titles, or else any field of text, or else
    the references.
    """
    field = _title_field(metadata) if field is None else _known_field(field, metadata)
    texts: Sequence[object] | None = references
    if field is not None and metadata is not None:
        texts = [entry.get(field) for entry in metadata]
    return None if texts is None else short_titles(texts, len(texts))


def short_titles(texts: Sequence[object] | None, n_rows: int) -> list[str]:
    """Return one line for each row; a row without a text is called by its number."""
    texts = [None] * n_rows if texts is None else texts
    if len(texts) != n_rows:
        raise ValueError(f"There are {len(texts)} titles and {n_rows} rows; give one per row.")
    return [_short(text) or f"row {row}" for row, text in enumerate(texts)]


def guess_picture_shape(X: np.ndarray) -> tuple[int, int] | None:
    """Return the shape of square gray pictures if rows look like pixels: whole numbers from 0 to 255; else None.

    Examples
    --------
    >>> guess_picture_shape(np.full((3, 64), 16.0)), guess_picture_shape(np.full((3, 64), 0.5))
    ((8, 8), None)
    """
    side = isqrt(X.shape[1])
    if side < _LEAST_SIDE or side * side != X.shape[1]:
        return None
    some = X[:_N_TRIED].astype(np.float64)
    is_gray = some.min() >= 0 and 1 < some.max() <= _LARGEST_GRAY and bool((some == np.floor(some)).all())
    return (side, side) if is_gray else None


def check_picture_shape(shape: tuple[int, int], n_features: int) -> tuple[int, int]:
    """Return the height and width of pictures; refuse those that do not take all features."""
    height, width = (check_integer(size, "picture_shape", low=1) for size in shape)
    if height * width != n_features:
        raise ValueError(
            f"picture_shape is {height} x {width}, which is {height * width} pixels; rows have {n_features} features. "
            "Give the height and width of the pictures in the rows."
        )
    return height, width


def gray_pictures(X: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return rows as uint8 pictures; the smallest value of all is black and the largest white."""
    values = X.astype(np.float64)
    low, span = values.min(), np.ptp(values)
    scaled = np.round(255 * (values - low) / (span or 1.0))
    return scaled.astype(np.uint8).reshape(len(X), *shape)


def _title_field(metadata: Sequence[Mapping[str, Any]] | None) -> str | None:
    if not metadata:
        return None
    of_text = [name for name, value in metadata[0].items() if isinstance(value, str)]
    usual = [name for usual in _USUAL_NAMES for name in of_text if name.lower() == usual]
    return next(iter(usual + of_text), None)


def _known_field(name: str, metadata: Sequence[Mapping[str, Any]] | None) -> str:
    known = list(dict.fromkeys(field for entry in metadata or () for field in entry))
    if name not in known:
        fields = f"The metadata has {', '.join(map(repr, known))}." if known else "There is no metadata."
        raise ValueError(f"The field of titles is {name!r}. {fields} Name one of its fields, or give the titles.")
    return name


def _short(text: object) -> str:
    words = " ".join(str("" if text is None else text).split())
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 3].rstrip()}..."
