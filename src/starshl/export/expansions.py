"""The functions of a StarSHL or StarRidge as parts of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import NotExpressibleError
from .graph import MAX_MODEL_BYTES, Value
from .kernels import kernel_expansion

__all__ = ["bit_expansion"]


def bit_expansion(hasher: Any, rows: Value) -> Value:
    """Return the functions of a hasher over a kernel mixture: of its bits, or of its classes."""
    expansion = hasher._expansion
    if hasher.sample_kind_ == "precomputed":
        raise NotExpressibleError(
            f"This {type(hasher).__name__} was fitted on precomputed kernel values, so its kernel is not known "
            "here. Fit it on rows with kernels of starshl.kernels, or compute its scores from your kernel values "
            "yourself: they are a matrix product with dual_coef_."
        )
    if hasher.sample_kind_ == "objects":
        names = ", ".join(sorted({type(kernel).__name__ for kernel in expansion.kernels}))
        raise NotExpressibleError(
            f"This {type(hasher).__name__} compares samples that are not rows of numbers ({names}), and an ONNX graph "
            "takes rows of numbers. Turn the samples into vectors, and fit a hasher with a kernel on vectors to the "
            "codebook of this one."
        )
    support = _dense(expansion.kept, rows.dtype)
    scores = kernel_expansion(rows, expansion.kernels, support, expansion.weights, expansion.coefficients)
    return scores + expansion.intercept


def _dense(kept: Any, dtype: np.dtype) -> np.ndarray:
    """Return support rows as an array; sparse ones may be far larger than they were."""
    n_bytes = kept.shape[0] * kept.shape[1] * dtype.itemsize
    if n_bytes > MAX_MODEL_BYTES:
        raise NotExpressibleError(
            f"The support rows take {n_bytes / 2**30:.1f} GiB in the graph, and an ONNX file holds 2 GiB at most. "
            "Compress the hasher first (hasher.compress), or reduce the features."
        )
    return kept if isinstance(kept, np.ndarray) else kept.toarray()
