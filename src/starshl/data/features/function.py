"""Function: what a user passes to make vectors, as the first step of an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .picture_files import open_picture

_SIDE = 64  # pixels
_ROWS, _COLUMNS = np.mgrid[:_SIDE, :_SIDE].astype(np.uint8)
#: Items by what is made of them a function is told from others when it is passed again; rows may have any width.
PROBED: dict[str, Sequence[Any]] = {
    "texts": ("a red car", "fresh bread and butter", "How do I change my address?"),
    "pictures": (
        np.stack([4 * _ROWS, 4 * _COLUMNS, np.full_like(_ROWS, 128)], axis=2),
        np.stack([4 * ((_ROWS ^ _COLUMNS) % _SIDE)] * 3, axis=2),
    ),
}


class Function:
    """A function from a list of texts or Pillow pictures, or from rows, to a matrix with one row for each.

    No file holds it. Pass it again where a file is opened: what it makes of a few examples is compared.
    """

    def __init__(self, function: Callable[[list[Any]], Any], takes: Sequence[str]) -> None:
        self.function = function
        self.takes = tuple(takes)
        self.n_features_out_: int | None = None

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def transform(self, X: Sequence[Any]) -> np.ndarray:
        """Return the vectors of items; pictures are opened first."""
        items: Any = X if self.takes == ("rows",) else [self._opened(item) for item in X]
        rows = np.asarray(self.function(items))
        if rows.ndim != 2 or len(rows) != len(items) or rows.dtype.kind not in "fiu" or not np.isfinite(rows).all():
            raise ValueError(
                f"The function {self.name} returned an array of shape {rows.shape} of {rows.dtype} for {len(items)} "
                "items; it must return finite numbers, one row per item."
            )
        if self.n_features_out_ not in (None, rows.shape[1]):
            raise ValueError(
                f"The function {self.name} made rows of {rows.shape[1]} numbers, and of {self.n_features_out_} before. "
                "All rows must have the same length."
            )
        self.n_features_out_ = rows.shape[1]
        return rows

    def _opened(self, item: Any) -> Any:
        is_text = isinstance(item, str) and "texts" in self.takes
        is_row = "rows" in self.takes and not isinstance(item, str | bytes) and np.ndim(item) == 1
        return item if is_text or is_row else open_picture(item)
