"""Reading samples: rows of numbers, objects of any type, or kernel values computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._validation import check_rows
from ..kernels import Kernel

__all__ = ["count_rows", "read_samples", "sample_kind", "take_rows"]


def sample_kind(kernels: str | Sequence[Kernel], X) -> str:
    """Return "precomputed", "vectors" or "objects"; vectors if any kernel asks for them or X is a matrix."""
    if isinstance(kernels, str):
        return "precomputed"
    if any(kernel.on_vectors for kernel in kernels):
        return "vectors"
    shape, dtype = getattr(X, "shape", ()), getattr(X, "dtype", None)
    is_table = len(shape) == 2 and (dtype is None or getattr(dtype, "kind", "O") in "biuf")
    return "vectors" if is_table else "objects"


def read_samples(estimator, X, kind: str, *, fitting: bool) -> np.ndarray:
    """Return samples as an array: (n, n_features), (n,) of objects, or (n_kernels, n, n_train) kernel values."""
    if kind == "vectors":
        return _check_scale(check_rows(estimator, X, fitting=fitting), fitting)
    if kind == "objects":
        return _read_objects(X, fitting)
    return _read_precomputed(estimator, X, fitting)


def count_rows(samples: np.ndarray, kind: str) -> int:
    return samples.shape[1] if kind == "precomputed" else len(samples)


def take_rows(samples: np.ndarray, rows: np.ndarray, kind: str) -> np.ndarray:
    """Select training rows; of kernel values, both rows and columns."""
    return samples[:, rows][:, :, rows] if kind == "precomputed" else samples[rows]


def _check_scale(rows: np.ndarray, fitting: bool) -> np.ndarray:
    """Refuse rows whose squared lengths overflow or, if all rows are that short, vanish in their precision."""
    largest = float(np.abs(rows).max())
    limits = np.finfo(rows.dtype)
    too_large = largest > np.sqrt(float(limits.max) / (4 * rows.shape[1]))
    too_small = 0 < largest < np.sqrt(float(limits.tiny) / float(limits.eps))
    if too_large or (fitting and too_small):
        raise ValueError(
            f"The largest entry of X is {largest:.0e} in size; kernels square it, which leaves the range of "
            f"{rows.dtype}. Rescale the features, for example with sklearn.preprocessing.StandardScaler."
        )
    return rows


def _read_objects(X, fitting: bool) -> np.ndarray:
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise ValueError(f"X is a {type(X).__name__}; give a list or a one-dimensional array of samples.")
    items = list(X)
    least = 2 if fitting else 1
    if len(items) < least:
        raise ValueError(f"X has {len(items)} samples; at least {least} are needed.")
    samples = np.empty(len(items), dtype=object)
    samples[:] = items
    return samples


def _read_precomputed(estimator, X, fitting: bool) -> np.ndarray:
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 3:
        samples = check_rows(estimator, X, fitting=fitting)[None]
    else:
        samples = np.asarray(X)
        samples = samples.astype(np.float32 if samples.dtype == np.float32 else np.float64, copy=False)
        if not np.isfinite(samples).all():
            column = int(np.argwhere(~np.isfinite(samples))[0, 2])
            raise ValueError(
                f"Input X contains NaN or infinity in column {column}; kernel values must be finite numbers."
            )
        if fitting:
            estimator.n_features_in_ = samples.shape[2]
    if fitting:
        if samples.shape[1] != samples.shape[2]:
            raise ValueError(
                f"Precomputed metric requires shape (n, n), or (n_kernels, n, n) for several kernels; X has shape "
                f"{np.shape(X)}. Compute the kernel between all training rows; X should be a square kernel matrix."
            )
        if samples.shape[1] < 2 or samples.shape[0] < 1:
            raise ValueError(f"X has shape {np.shape(X)}; at least one kernel and two rows are needed.")
    elif samples.shape[0] != estimator.kernel_weights_.shape[1] or samples.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"X has shape {np.shape(X)}; this hasher was fitted on {estimator.kernel_weights_.shape[1]} kernels and "
            f"{estimator.n_features_in_} rows, so it needs kernel values of shape (n_kernels, n, n_train)."
        )
    return samples
