"""What a fit was given, in a form that a model file can hold: sizes, hashes, labels and versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from .._common.files import array_digest
from .._common.labels import check_labels
from .._version import __version__

_MOST_CLASSES = 1000  # that are counted one by one
_PLAIN = (str, bool, int, float, type(None))
_INSIDE_A_FIT: ContextVar[bool] = ContextVar("inside_a_fit", default=False)


@contextmanager
def outermost_fit() -> Iterator[bool]:
    """Tell whether no other fit is running: only the outermost one saw what the user gave."""
    is_outermost = not _INSIDE_A_FIT.get()
    token = _INSIDE_A_FIT.set(True)
    try:
        yield is_outermost
    finally:
        _INSIDE_A_FIT.reset(token)


def describe_fit(X: Any, y: Any, labels: Any, *, holds_kernels: bool) -> dict[str, Any]:
    """Return the record of a fit on samples and labels, the same for the same data and versions.

    ``labels`` are those that y holds, or y itself if it holds none. ``holds_kernels`` says that X is a kernel matrix,
    or several of them.
    """
    shape = _shape(X)
    n_rows = int(shape[1] if holds_kernels else shape[0])
    n_columns = int(shape[1]) if len(shape) == 2 else None
    return {
        "rows": n_rows,
        "columns": n_columns,
        "type": _type_name(X),
        "rows_sha256": data_digest(X),
        **_describe_labels(y, labels, n_rows),
        "versions": {"starshl": __version__, "python": platform.python_version(), **_versions_of_libraries()},
    }


def check_record(record: Any) -> dict[str, Any] | None:
    """Return the record that a model file holds, None if it holds none or something else."""
    return record if isinstance(record, dict) and isinstance(record.get("versions"), dict) else None


def data_digest(samples: Any) -> str | None:
    """Return the SHA-256 of rows, texts or labels; None of samples that stay in a file or are other objects.

    Type, shape and contents count, as in :func:`starshl._common.files.array_digest`.
    """
    if issparse(samples):
        rows = csr_array(samples)
        return array_digest({"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}, f"{rows.shape}\n")
    is_in_memory = isinstance(samples, list | tuple) or hasattr(samples, "__array__")
    if isinstance(samples, np.memmap) or not is_in_memory:
        return None
    try:
        array = np.asarray(samples)
    except (TypeError, ValueError):
        return None
    if array.dtype.kind in "biufS":
        return array_digest({"": array})
    cells = array.ravel().tolist()
    # Only what prints the same in every process.
    if array.dtype.kind not in "UO" or not all(isinstance(cell, _PLAIN) for cell in cells):
        return None
    digest = hashlib.sha256(f"{array.shape}\n".encode())
    for cell in cells:
        digest.update(f"{cell!r}\n".encode())
    return digest.hexdigest()


@cache
def _versions_of_libraries() -> dict[str, str]:
    return {name: version(name) for name in ("numba", "numpy", "scikit-learn", "scipy")}


def _shape(X: Any) -> tuple[int, ...]:
    if hasattr(X, "shape"):
        return tuple(X.shape)
    try:
        return np.asarray(X).shape
    except ValueError:  # samples of different lengths
        return (len(X),)


def _type_name(X: Any) -> str:
    dtype = getattr(X, "dtype", None)
    return f"{'sparse ' if issparse(X) else ''}{dtype}" if isinstance(dtype, np.dtype) else type(X).__name__


def _describe_labels(y: Any, labels: Any, n_rows: int) -> dict[str, Any]:
    try:
        labels = check_labels(labels, n_rows)
    except (TypeError, ValueError):  # a method that reads no labels takes anything for them
        return {"labeled": None, "classes": None, "labels_sha256": None}
    names = [str(name) for name in labels.classes.tolist()]
    described: dict[str, Any] = {"labeled": int(labels.labeled.sum()), "classes": len(names)}
    if 0 < len(names) <= _MOST_CLASSES:
        described["label_counts"] = dict(zip(names, labels.class_counts.tolist(), strict=True))
    return {**described, "labels_sha256": None if y is None else data_digest(y)}
