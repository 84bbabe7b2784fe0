"""Codes of rows that are read block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..base import BaseHasher
from ..codes import BinaryCodes
from ..tables import JoinedRows, Partition, RowSource

__all__ = ["BLOCK_ROWS", "PartitionTask", "encode_blocks", "encode_partition"]

BLOCK_ROWS = 8192  # a multiple of the tiles of all hashers, so that blocks change no byte of the codes


def encode_blocks(
    hasher: BaseHasher,
    source: RowSource,
    rows: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    database: bool = False,
    report: Callable[[int], None] = lambda n_done: None,
) -> BinaryCodes:
    """Return the codes of some rows of a source, read block by block.

    Parameters
    ----------
    rows : array of int, numbers of rows in rising order
    labels : array of as many labels, default=None
    database : bool, default=False
        Whether the rows are items to be searched, not queries.
    report : function that is called with the number of rows that were encoded
    """
    packed, n_done = [], 0
    for block in source.blocks(rows, BLOCK_ROWS):
        block = block.astype(source.precision_in_memory, copy=False)
        known = None if labels is None else labels[n_done : n_done + len(block)]
        packed.append((hasher.encode_database(block, known) if database else hasher.encode(block)).packed)
        n_done += len(block)
        report(len(block))
    return hasher.as_codes(np.concatenate(packed))


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A partition by its number, its place in the source, and the labels of its rows, if they have any."""

    number: int
    partition: Partition
    labels: np.ndarray | None


def encode_partition(task: PartitionTask, hasher: BaseHasher, rows: JoinedRows, database: bool) -> np.ndarray:
    """Return the packed codes of one partition."""
    part = rows.parts[task.partition.part]
    numbers = np.arange(task.partition.start, task.partition.stop)
    return encode_blocks(hasher, part, numbers, task.labels, database=database).packed
