"""Scores of a record, computed once and kept beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .._files import write_atomically
from ..evaluation import Record, RecordFolder, cluster_agreement, score

__all__ = ["scores_of"]

_SCORES_FORMAT = 2
_BY_NUMBER = ("precision_at", "accuracy_knn")


def scores_of(folder: RecordFolder, record: Record, *, n_jobs: int | None = None) -> dict[str, Any]:
    """Return :func:`starshl.evaluation.score` of a finished run, from the file beside its record if it is there.

    A run without labels gets ``clusters`` too, see :func:`starshl.evaluation.cluster_agreement`. Scores of
    other arrays, or of another format, are computed again.
    """
    path = folder.path_of(record.key).with_suffix(".scores.json")
    stamp = {"format": _SCORES_FORMAT, "arrays": _digest(record)}
    found = _read(path, stamp)
    if found is None:
        found = score(record, n_jobs=n_jobs)
        if "labeled" in record.arrays and not record.arrays["labeled"].any():
            found["clusters"] = cluster_agreement(record)
        _write(path, stamp | {"scores": found})
    for name in _BY_NUMBER:
        if name in found:
            found[name] = {int(key): value for key, value in found[name].items()}
    return found


def _digest(record: Record) -> str:
    return hashlib.sha256(json.dumps(record.digests, sort_keys=True).encode()).hexdigest()


def _read(path: Path, stamp: dict) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text())
        return kept["scores"] if {name: kept[name] for name in stamp} == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, content: dict) -> None:
    try:
        write_atomically(path, json.dumps(content).encode())
    except OSError:
        # A folder of records that may only be read can be reported on all the same.
        return
