"""Fits in another process, so that the service stays responsive and a fit can be stopped, and the codes that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from .._common.worker import Worker
from ..exceptions import InputError
from ..hashers.base import BaseHasher
from ..hashers.catalog import get_class
from .jobs import RunningJob, job_receipt
from .searcher import Searcher


@dataclass(frozen=True, slots=True)
class FitSettings:
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
            raise self.refusal("made", error) from error

    def refusal(self, step: str, error: TypeError) -> InputError:
        """Return the error for settings of a type that a hasher cannot be made or fitted with."""
        return InputError(
            "{method} cannot be {step} with these settings ({reason})",
            advice="Correct them.",
            parameter="settings",
            value=dict(self.settings),
            method=self.method,
            step=step,
            reason=str(error),
        )


def check_fit(searcher: Searcher, fit: FitSettings) -> None:
    """Refuse a fit that cannot work, before it begins."""
    fit.hasher()
    with searcher.opened() as collection:
        if collection.vector_dtype is None:
            raise ValueError(
                "This collection keeps no vectors, so there is nothing to fit a hasher on. Make a collection that "
                "keeps vectors, or send a model that was fitted elsewhere."
            )
        if not len(collection):
            raise ValueError("The collection is empty, so there is nothing to fit a hasher on. Add items first.")


def check_model(searcher: Searcher, hasher: BaseHasher) -> None:
    """Refuse a hasher that cannot encode the kept vectors."""
    with searcher.opened() as collection:
        known, given = collection.hasher.vector_width, hasher.vector_width
        if collection.vector_dtype is None:
            raise ValueError("This collection keeps no vectors, so its items cannot be encoded again.")
        if known != given:
            raise ValueError(
                f"The vectors of this collection have {known} numbers; the hasher was fitted on rows of {given}. "
                "Fit it on vectors of the same kind."
            )


def fit_and_reencode(job: RunningJob, searcher: Searcher, fit: FitSettings) -> dict[str, Any]:
    """Fit a hasher on the kept vectors and the labels of all items, and encode them with it."""
    with Worker(fit_hasher) as worker:
        job.report("reading vectors")
        task = _read_task(searcher, fit)
        n_labels = sum(label is not None for label in task.labels)
        job.report("fitting")
        worker.send(task)
        del task  # the vectors may take much memory
        hasher = worker.result(check=job.check)
    mode = "supervised" if n_labels else "unsupervised, because no item has a label"
    return reencode(job, searcher, hasher, {"method": fit.method, "labels": n_labels, "mode": mode})


@dataclass(frozen=True, slots=True)
class FitTask:
    """All that another process needs for a fit; labels are None where there is none."""

    fit: FitSettings
    rows: np.ndarray
    labels: list[Any]


def _read_task(searcher: Searcher, fit: FitSettings) -> FitTask:
    with searcher.opened() as collection:
        ids = collection.ids
        return FitTask(fit, collection.vectors(ids), [item.label for item in collection.get(ids)])


def fit_hasher(task: FitTask) -> BaseHasher:
    """Fit a hasher; settings that do not suit the rows are refused."""
    y = None if all(label is None for label in task.labels) else task.labels
    try:
        return task.fit.hasher().fit(task.rows, y)
    except TypeError as error:
        raise task.fit.refusal("fitted", error) from error


def reencode(
    job: RunningJob, searcher: Searcher, hasher: BaseHasher, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Encode the kept vectors of all items with another hasher; from here on, the job can no longer be canceled."""
    result = {"method": type(hasher).__name__, "n_bits": hasher.n_bits_, **(details or {})}
    job.report("encoding", 0, len(searcher))
    searcher.writer.replace_hasher(hasher, receipt=(job_receipt(job.id), json.dumps(result))).result()
    job.stage, job.done, job.total = "encoding", len(searcher), len(searcher)
    return result
