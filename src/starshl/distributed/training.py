"""Fit hashers on a Dask cluster: blocks of rows, single bits, or a whole fit as tasks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from .._common.engine import using_engine
from .._common.labels import LabelsLike, parsed_if_labels
from ..data.tables.locations import Location
from ..data.tables.row_source import JoinedRows, RowSource
from ..hashers.base import BaseHasher
from .encoding import open_rows
from .engine import connected

Hasher = TypeVar("Hasher", bound=BaseHasher)


def fit(hasher: Hasher, source: Location | RowSource | np.ndarray, y: LabelsLike = None, *, client: Any) -> Hasher:
    """Fit a hasher on a cluster and return it; if a worker dies, its tasks run again, and the fit goes on.

    What becomes a task depends on the method:

    - :class:`starshl.StarRidge` with more labeled rows than ``max_exact_rows``: blocks of 32,768 rows. The result is
      that of a single machine but for the order of sums in float64; see docs/distributed.md.
    - :class:`starshl.StarSHL`: bits, and blocks of rows when functions are evaluated. The result is that of a single
      machine, byte for byte.
    - any other fit: the fit as a whole, on one worker. The result is that of a single machine, byte for byte.

    Parameters
    ----------
    hasher : BaseHasher
    source : path, pattern, folder or URL of .parquet, .npy or .zarr, RowSource, or array
        For StarRidge with many rows, workers read the rows themselves, so all of them must be able to reach it.
    y : array of shape (n_rows,), default=None
    client : distributed.Client, or the address of a scheduler
    """
    rows: Any = source if isinstance(source, np.ndarray) else open_rows(source)
    y = parsed_if_labels(y)
    with connected(client) as engine:
        tasks = _tasks(hasher, rows, y)
        if tasks is not None:
            with using_engine(engine):
                return hasher.fit(rows if tasks == "blocks" else _gathered(rows), y)
        fitted = engine.fetch(engine.submit(_fitted, hasher, rows, y))
    hasher.__dict__ = fitted.__dict__
    return hasher


def _tasks(hasher: BaseHasher, rows: Any, y: LabelsLike) -> str | None:
    """Return which parts of a fit are tasks of their own, None if it is one task as a whole."""
    is_matrix = isinstance(rows, JoinedRows) or (rows.ndim == 2 and rows.dtype.kind in "biuf")
    return hasher.fit_tasks(len(rows), y) if is_matrix else None


def _fitted(hasher: BaseHasher, rows: Any, y: LabelsLike) -> BaseHasher:
    return hasher.fit(_gathered(rows), y)


def _gathered(rows: np.ndarray | JoinedRows) -> np.ndarray:
    """Return all rows, in the precision in which reading their file would give them."""
    if isinstance(rows, np.ndarray):
        return rows
    return rows.take(np.arange(len(rows))).astype(rows.precision_in_memory, copy=False)
