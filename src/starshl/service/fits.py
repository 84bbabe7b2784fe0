"""Fits in a separate process: the service stays responsive, and a fit can be stopped at any moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ..hashers.base import BaseHasher
from ..hashers.catalog import get_class, load
from .jobs import Canceled, RunningJob, job_receipt
from .searcher import Searcher

_ROWS, _LABELS, _REQUEST, _MODEL, _ERROR = "rows.npy", "labels.json", "request.json", "hasher.star", "error.txt"


@dataclass(frozen=True, slots=True)
class FitRequest:
    """A hasher to fit: the name of its class, bits, seed, and further settings."""

    method: str
    n_bits: int
    seed: int
    settings: Mapping[str, Any]

    def hasher(self) -> BaseHasher:
        """Return the hasher, not fitted yet; refuse a method or a setting that does not exist."""
        kind = get_class(self.method)
        known = [name for name in signature(kind).parameters if name != "n_bits"]
        if "n_bits" in self.settings:
            raise ValueError("The settings hold 'n_bits', which is given next to them. Leave it out of the settings.")
        unknown = sorted(set(self.settings) - set(known))
        if unknown:
            raise ValueError(f"{self.method} has no setting {unknown[0]!r}; it has {', '.join(known)}.")
        seed = {"random_state": self.seed} if "random_state" in known else {}
        try:
            return kind(self.n_bits, **(seed | dict(self.settings)))
        except TypeError as error:
            raise ValueError(f"{self.method} cannot be made with these settings ({error}). Correct them.") from error


def check_fit(searcher: Searcher, request: FitRequest) -> None:
    """Refuse a fit that cannot work, before it begins."""
    request.hasher()
    with searcher.opened() as collection:
        if collection.keeps is None:
            raise ValueError(
                "This collection keeps no vectors, so there is nothing to fit a hasher on. Make a collection that "
                "keeps vectors, or send a model that was fitted elsewhere."
            )
        if not len(collection):
            raise ValueError("The collection is empty, so there is nothing to fit a hasher on. Add items first.")


def fit_again(job: RunningJob, searcher: Searcher, request: FitRequest) -> dict[str, Any]:
    """Fit a hasher on the kept vectors and the labels of all items, and encode them with it."""
    with tempfile.TemporaryDirectory(prefix=f".{searcher.folder.name}.job-", dir=searcher.folder.parent) as place:
        job.report("reading vectors")
        n_labels = _write_task(Path(place), searcher, request)
        job.report("fitting")
        hasher = _fitted(job, Path(place))
    mode = "supervised" if n_labels else "unsupervised, because no item has a label"
    return reencode(job, searcher, hasher, {"method": request.method, "labels": n_labels, "mode": mode})


def reencode(
    job: RunningJob, searcher: Searcher, hasher: BaseHasher, told: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Encode the kept vectors of all items with another hasher; from here on, the job can no longer be canceled."""
    result = {"method": type(hasher).__name__, "n_bits": hasher.n_bits_, **(told or {})}
    job.report("encoding", 0, len(searcher))
    searcher.replace_hasher(hasher, receipt=(job_receipt(job.id), json.dumps(result))).result()
    job.stage, job.done, job.total = "encoding", len(searcher), len(searcher)
    return result


def _write_task(place: Path, searcher: Searcher, request: FitRequest) -> int:
    """Write what the other process needs; return how many items have a label."""
    with searcher.opened() as collection:
        ids = collection.ids
        np.save(place / _ROWS, collection.vectors(ids))
        labels = [item.label for item in collection.get(ids)]
    (place / _LABELS).write_text(json.dumps(labels))
    (place / _REQUEST).write_text(json.dumps([request.method, request.n_bits, request.seed, dict(request.settings)]))
    return sum(label is not None for label in labels)


def _fitted(job: RunningJob, place: Path) -> BaseHasher:
    """Wait for the other process, and end it if the job is canceled."""
    # Not from the folder of the user, whose files may be called like modules.
    command = [sys.executable, "-P", "-m", "starshl.service.fits", str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                if job.stop.wait(0.1):
                    raise Canceled
        finally:
            process.kill()
    if (place / _MODEL).exists():
        return load(place / _MODEL)
    if (place / _ERROR).exists():
        raise ValueError((place / _ERROR).read_text())
    raise RuntimeError(f"the process that fits ended with code {process.returncode}")


def _fit(place: Path) -> None:
    """Do the work of the other process."""
    method, n_bits, seed, settings = json.loads((place / _REQUEST).read_text())
    labels = json.loads((place / _LABELS).read_text())
    y = None if all(label is None for label in labels) else labels
    try:
        hasher = FitRequest(method, n_bits, seed, settings).hasher().fit(np.load(place / _ROWS), y)
        hasher.save(place / _MODEL)
    except (ValueError, TypeError) as error:
        (place / _ERROR).write_text(str(error))


def _end_with_parent() -> None:
    """End this process when the other end of its input is closed, which happens however the parent ends."""
    # Not by sys.stdin: a thread that waits inside of it makes Python abort when the process ends.
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _fit(Path(sys.argv[1]))
