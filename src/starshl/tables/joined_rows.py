"""Many files as one matrix, and the partitions in which it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import TableError
from .row_source import RowSource, regrouped

__all__ = ["JoinedRows", "Partition"]


@dataclass(frozen=True, slots=True)
class Partition:
    """Rows ``start`` to ``stop`` of one part, which begin at row ``first`` of the whole."""

    part: int
    start: int
    stop: int
    first: int

    def __len__(self) -> int:
        return self.stop - self.start


class JoinedRows(RowSource):
    """The rows of several sources, one after the other.

    Parameters
    ----------
    parts : sequence of RowSource
        All of the same width. Errors about a row name the part's own file, and the row in it.

    Examples
    --------
    >>> from starshl.tables import ArrayRows
    >>> rows = JoinedRows([ArrayRows(np.zeros((2, 3))), ArrayRows(np.ones((2, 3)))])
    >>> rows.take(np.array([1, 2])).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    >>> [len(partition) for partition in rows.partitions(10)]
    [2, 2]
    """

    def __init__(self, parts: Sequence[RowSource]):
        self.parts = tuple(parts)
        width = self.parts[0].shape[1]
        for part in self.parts:
            if part.shape[1] != width:
                raise TableError(
                    part.path or "rows",
                    [f"has {part.shape[1]} features, and {str(self.parts[0].path)!r} has {width}"],
                    "All files of a source need the same columns. Leave it out, or write it again.",
                )
        self._ends = np.cumsum([len(part) for part in self.parts])
        super().__init__((int(self._ends[-1]), width), np.result_type(*(part.stored_type for part in self.parts)))

    def partitions(self, n_rows: int) -> list[Partition]:
        """Cut each part into pieces of at most ``n_rows`` rows; no piece holds rows of two parts."""
        found = []
        for number, (part, end) in enumerate(zip(self.parts, self._ends.tolist(), strict=True)):
            begin = end - len(part)
            for start in range(0, len(part), n_rows):
                found.append(Partition(number, start, min(start + n_rows, len(part)), begin + start))
        return found

    def _read(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        return regrouped(self._chosen(rows, size), size)

    def _chosen(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
        edges = np.searchsorted(rows, [0, *self._ends])
        for part, end, first, last in zip(self.parts, self._ends, edges[:-1], edges[1:], strict=True):
            if first < last:
                yield from part.blocks(rows[first:last] - (end - len(part)), size)
