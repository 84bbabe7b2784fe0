"""Codes of any number of rows: partitions are encoded by workers, and written by one writer as they come in.

Codes are a hundredth of the rows, so they all pass through the client. It alone writes, which is what makes a partition
written once: a worker that Dask believes lost may still finish its task, but it writes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.engine import scatter
from .._common.files import array_digest
from .._common.labels import Labels, check_labels
from .._common.progress import row_progress
from .._common.validation import check_integer
from ..codes.binary import n_bytes
from ..data.tables.columns import Columns
from ..data.tables.locations import Location, fingerprint
from ..data.tables.opening import open_partitions
from ..data.tables.row_source import JoinedRows, Partition, RowSource
from ..hashers.base import BaseHasher
from ..hashers.fitting import BLOCK_ROWS, encode_blocks
from .code_folder import CodeFolder
from .engine import DaskEngine, connected

PARTITION_ROWS = 8 * BLOCK_ROWS


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A partition by its number, its place in the source, and the labels of its rows, if they have any."""

    number: int
    partition: Partition
    labels: Labels | None


def encode_partition(task: PartitionTask, hasher: BaseHasher, rows: JoinedRows, database: bool) -> np.ndarray:
    """Return the packed codes of one partition."""
    part = rows.parts[task.partition.part]
    numbers = np.arange(task.partition.start, task.partition.stop)
    return encode_blocks(hasher, part, numbers, task.labels, database=database).packed


def encode(
    hasher: BaseHasher,
    source: Location | RowSource,
    folder: str | os.PathLike[str],
    *,
    client: Any,
    labels: np.ndarray | None = None,
    database: bool = False,
    partition_rows: int = PARTITION_ROWS,
    one_file: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Write the packed codes of all rows of a source to a folder, one file per partition; return its manifest.

    After any interruption, run it again, and it goes on where it stopped: partitions that are done stay as they are.
    The codes are those that ``hasher.encode`` gives for each file, byte for byte.

    Parameters
    ----------
    hasher : fitted hasher
    source : path, pattern, folder or URL of .parquet, .npy or .zarr, or RowSource
        Workers read the rows themselves, so all of them must be able to reach it.
    folder : path
        New, empty, or that of the same run. Only the client writes to it.
    client : distributed.Client, or the address of a scheduler
    labels : array of shape (n_rows,), default=None
        Labels of the rows, which ``database`` may use.
    database : bool, default=False
        Write codes for items to be searched; by default, codes for queries.
    partition_rows : int, default=65536
        Largest number of rows in a partition, a multiple of 8192, so that partitions change no byte of the codes.
    one_file : bool, default=False
        Also write ``codes.npy`` with all codes.
    progress : bool, default=False
        Show a bar on standard error.
    """
    check_is_fitted(hasher)
    if check_integer(partition_rows, "partition_rows", low=BLOCK_ROWS) % BLOCK_ROWS:
        raise ValueError(f"partition_rows is {partition_rows}; it must be a multiple of {BLOCK_ROWS}.")
    rows = open_rows(source, hasher)
    _check_rows(rows, hasher, labels)
    known = check_labels(labels, len(rows)) if database and labels is not None else None
    partitions = rows.partitions(partition_rows)
    plan = _plan(hasher, rows, labels, database=database, partition_rows=partition_rows)
    target = CodeFolder(Path(folder), plan, len(partitions))
    # The cluster first: where there is none, no folder is left behind.
    with (
        connected(client) as engine,
        target.locked(),
        row_progress("encoding", len(rows), shown=progress) as report,
    ):
        report(sum(len(partitions[number]) for number in target.done))
        tasks = [_task(number, partitions[number], known) for number in range(len(partitions))]
        _encode_missing(engine, hasher, rows, tasks, target, database, report)
        return target.finish(one_file=one_file)


def _check_rows(rows: JoinedRows, hasher: BaseHasher, labels: np.ndarray | None) -> None:
    if rows.shape[1] != hasher.n_features_in_:
        raise ValueError(
            f"The rows have {rows.shape[1]} features, but {type(hasher).__name__} was fitted on "
            f"{hasher.n_features_in_}. Encode rows with the columns that it was fitted on."
        )
    if labels is not None and len(labels) != len(rows):
        raise ValueError(f"There are {len(rows)} rows and {len(labels)} labels. Give one label per row.")


def _encode_missing(
    engine: DaskEngine,
    hasher: BaseHasher,
    rows: JoinedRows,
    tasks: Sequence[PartitionTask],
    target: CodeFolder,
    database: bool,
    report: Callable[[int], None],
) -> None:
    """Write all partitions that the folder does not have yet."""
    waiting = [task for task in tasks if task.number not in target.done]
    if not waiting:
        return
    shared = scatter(engine, hasher), scatter(engine, rows), database
    for task, packed in engine.unordered(encode_partition, waiting, *shared):
        target.write(task.number, packed)
        report(len(packed))


def open_rows(source: Location | RowSource, hasher: BaseHasher | None = None) -> JoinedRows:
    """Return the rows of a source; a fitted hasher finds its columns by name."""
    if isinstance(source, JoinedRows):
        return source
    if isinstance(source, RowSource):
        return JoinedRows([source])
    names = None if hasher is None else hasher.feature_names
    rows: Any = open_partitions(source, Columns(features=names or None)).X
    return rows


def _task(number: int, partition: Partition, labels: Labels | None) -> PartitionTask:
    own = slice(partition.first, partition.first + len(partition))
    return PartitionTask(number, partition, None if labels is None else labels.take(own))


def _plan(
    hasher: BaseHasher, rows: JoinedRows, labels: np.ndarray | None, *, database: bool, partition_rows: int
) -> dict[str, Any]:
    """Return what tells this run from others, as JSON holds it."""
    header, arrays = hasher.pack()
    return {
        "format": "starshl-codes",
        "version": 1,
        "codes_of": "database" if database else "queries",
        "n_bits": hasher.n_bits_,
        "bytes_per_code": n_bytes(hasher.n_bits_),
        "bit_order": "bit j is bit j % 8 of byte j // 8",
        "metric": hasher.as_codes(np.zeros((0, n_bytes(hasher.n_bits_)), np.uint8)).metric,
        "space_id": hasher.space_id_,
        "method": type(hasher).__name__,
        "model": array_digest(arrays, json.dumps(header, sort_keys=True, default=str)),
        "labels": None if labels is None else array_digest({"labels": np.asarray(labels).astype(str)}),
        "partition_rows": partition_rows,
        "source": [
            {"file": None if part.path is None else str(part.path), "rows": len(part)}
            | ({} if part.path is None else fingerprint(part.path))
            for part in rows.parts
        ],
    }
