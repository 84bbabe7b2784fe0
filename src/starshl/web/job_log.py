"""The jobs of a collection on the disk: one line per change of a job, of which the last one counts."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from .._files import replacing_file
from .._json import parse_json
from ..answers import Job

__all__ = ["JobLog"]

_log = logging.getLogger(__name__)
# More than this, and most of them are about jobs that are forgotten.
_MOST_LINES = 10_000


class JobLog:
    """A file beside a collection, which exists from its first job on.

    A crash can tear the last line, which is ignored then. Nothing here says what a job has stored: the collection
    itself does, by its receipts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._n_lines = 0

    def read(self) -> list[Job]:
        """Return each job as it was last noted, the oldest first."""
        found: dict[str, Job] = {}
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in lines:
            try:
                job = Job.of(parse_json(line))
            except (ValueError, TypeError, AttributeError):
                _log.warning("a line of %s cannot be read and is skipped", self._path)
            else:
                found[job.id] = job
        return list(found.values())

    def append(self, job: Job, all_jobs: Iterable[Job] = ()) -> None:
        """Note how a job is now; once in a while, ``all_jobs`` replace the lines before."""
        with self._lock:
            if self._n_lines >= _MOST_LINES:
                self._write(all_jobs)
            with self._path.open("ab") as file:
                file.write(_line(job))
            self._n_lines += 1

    def replace(self, jobs: Iterable[Job]) -> None:
        """Note these jobs and forget all others."""
        with self._lock:
            self._write(jobs)

    def _write(self, jobs: Iterable[Job]) -> None:
        lines = [_line(job) for job in jobs]
        if lines or self._path.exists():
            with replacing_file(self._path) as file:
                file.writelines(lines)
        self._n_lines = len(lines)


def _line(job: Job) -> bytes:
    return json.dumps(asdict(job)).encode() + b"\n"
