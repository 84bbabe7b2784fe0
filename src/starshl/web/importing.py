"""Items from a file of JSON lines, stored in batches that a second attempt does not store again."""

from __future__ import annotations

from typing import Any, BinaryIO

from ..exceptions import CollectionError
from .errors import ServiceError
from .import_check import ImportCheck
from .interrupted import batch_receipt
from .jobs import RunningJob
from .lines import Batch, read_batches
from .requests import WriteKey
from .searcher import Searcher

__all__ = ["import_lines"]

_LINES_AT_ONCE = 500  # one transaction: long enough to be fast, short enough for other writes in between


def import_lines(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> dict[str, Any]:
    """Check all lines, then store them; each batch carries a key made of ``key`` and its number."""
    try:
        n_lines = _check(job, searcher, file, key)
    except ValueError as error:
        raise ValueError(f"{error} This import has stored nothing.") from error
    file.seek(0)
    n_done = n_repeated = 0
    for batch in read_batches(file, _LINES_AT_ONCE):
        job.report("storing", n_done, n_lines)
        try:
            written = searcher.add(batch.items, _key(key, batch)).result()
        except (ValueError, ServiceError, CollectionError) as error:
            # The collection has changed since the check.
            raise ValueError(
                f"{n_done} of {n_lines} items are stored. Those of lines {batch.lines[0]} to {batch.lines[-1]} are "
                f"not: {error} Send all lines again with the header Idempotency-Key: {key}; what is stored is skipped."
            ) from error
        n_done += len(written.ids)
        n_repeated += len(written.ids) if written.repeated else 0
    job.report("storing", n_done, n_lines)
    return {"stored": n_done - n_repeated, "repeated": n_repeated}


def _check(job: RunningJob, searcher: Searcher, file: BinaryIO, key: str) -> int:
    """Read the whole file, refuse what could not be stored, and return how many items there are."""
    check, n_lines = ImportCheck(), 0
    for batch in read_batches(file, _LINES_AT_ONCE):
        with searcher.opened() as collection:
            check.add(collection, batch, _key(key, batch))
        n_lines += len(batch.lines)
        job.report("checking", n_lines)
    with searcher.opened() as collection:
        check.finish(collection)
    return n_lines


def _key(key: str, batch: Batch) -> WriteKey:
    return WriteKey(batch_receipt(key, batch.number), batch.digest)
