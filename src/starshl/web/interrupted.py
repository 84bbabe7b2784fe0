"""What became of jobs that the end of a service cut short; the receipts of the collection tell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from ..answers import Job
from ..collection import Collection

__all__ = ["batch_receipt", "job_receipt", "settled"]


def job_receipt(job: str) -> str:
    """Return the key of the receipt that a job stores together with its one change."""
    return f"job/{job}"


def batch_receipt(key: str, number: int) -> str:
    """Return the key of the receipt that an import stores together with a batch."""
    return f"import/{key}/{number}"


def settled(jobs: Iterable[Job], collection: Collection) -> list[Job]:
    """Return jobs of an earlier service, of which none can be under way any more."""
    return [_settled(job, collection) if job.state in ("waiting", "running") else job for job in jobs]


def _settled(job: Job, collection: Collection) -> Job:
    over = replace(job, ended=time.time(), state="interrupted")
    if job.kind == "import" and job.key is not None:
        return _settled_import(over, job.key, collection)
    receipt = collection.receipt(job_receipt(job.id))
    if receipt is not None:
        return replace(over, state="done", result=json.loads(receipt))
    return replace(
        over, error="The service stopped before this job was done. The job has changed nothing. Start it again."
    )


def _settled_import(job: Job, key: str, collection: Collection) -> Job:
    n_stored = 0
    for number in count():
        receipt = collection.receipt(batch_receipt(key, number))
        if receipt is None:
            break
        n_stored += json.loads(receipt)["n"]
    if n_stored == job.total:
        return replace(job, state="done", done=n_stored, result={"stored": n_stored})
    of_all = "" if job.total is None else f" of {job.total}"
    error = (
        f"The service stopped before this job was done. {n_stored}{of_all} items are stored. Send the same lines "
        f"with the header Idempotency-Key: {key} to store the rest."
    )
    return replace(job, done=n_stored, error=error)
