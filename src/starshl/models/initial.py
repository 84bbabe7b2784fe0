"""Where the descent starts: codewords, kernel weights and given assignments."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from .._validation import PartialLabels, check_choice
from ..codebooks import Codebook, random_codewords, separated_codewords
from ..solvers.kernel_weights import UNWEIGHTED_ABOVE

__all__ = ["check_assignments", "check_codebook", "initial_codewords", "initial_weights"]


def check_codebook(codewords: str | ArrayLike | Codebook, labels: PartialLabels, n_bits: int) -> None:
    """Refuse a codebook that does not go with the labels or the length, before the fit spends any time."""
    if not isinstance(codewords, Codebook):
        return
    if not labels.labeled.any():
        raise ValueError(
            "codewords is a Codebook, whose words belong to named classes, and y has no labels: it is not known which "
            "cluster is which class. Give some labels, or set codewords='separated'."
        )
    codewords.words_for(labels.classes, n_bits)


def initial_codewords(
    codewords: str | ArrayLike | Codebook,
    classes: np.ndarray,
    n_bits: int,
    rng: np.random.RandomState,
    *,
    distinct: bool,
) -> np.ndarray:
    """Return (n_codewords, n_bits) signs from a word, an array or a codebook."""
    n_codewords = len(classes)
    if isinstance(codewords, Codebook):
        return codewords.words_for(classes, n_bits)
    if isinstance(codewords, str):
        check_choice(codewords, "codewords", ("separated", "random"), or_else="a Codebook or an array")
        if codewords == "separated":
            return separated_codewords(n_codewords, n_bits, rng)
        return random_codewords(n_codewords, n_bits, rng, distinct=distinct)
    signs = np.asarray(codewords)
    if signs.shape != (n_codewords, n_bits) or not np.isin(signs, (-1, 1)).all():
        other = "" if np.isin(signs, (-1, 1)).all() else " and entries other than -1 and +1"
        raise ValueError(
            f"codewords has shape {signs.shape}{other}; it must be 'separated', 'random', a Codebook or an "
            f"array of -1 and +1 of shape ({n_codewords}, {n_bits}), one row per class and one column per bit."
        )
    if len(np.unique(signs, axis=0)) < n_codewords and (n_bits > 30 or 2**n_bits >= n_codewords):
        warnings.warn(
            "Some rows of codewords are equal: their classes share one code, and predict returns the most "
            "frequent of them. Use distinct codewords to tell them apart.",
            UserWarning,
            stacklevel=5,
        )
    return signs.astype(np.int8)


def initial_weights(
    kernel_weights: str | ArrayLike | None, n_bits: int, n_kernels: int, p: float, rng: np.random.RandomState
) -> np.ndarray:
    """Return (n_bits, n_kernels) kernel weights from None, a word or an array, each row in the p-norm ball."""
    if kernel_weights is None:
        size = 1.0 if p > UNWEIGHTED_ABOVE else n_kernels ** (-1.0 / p)
        return np.full((n_bits, n_kernels), size)
    if isinstance(kernel_weights, str):
        check_choice(kernel_weights, "kernel_weights", ("random",))
        drawn = rng.uniform(size=(n_bits, n_kernels))
        return drawn / drawn.sum(axis=1, keepdims=True)
    weights = np.asarray(kernel_weights, dtype=np.float64)
    allowed = f"None, 'random' or an array of shape ({n_bits}, {n_kernels}), one row per bit and one column per kernel"
    if weights.shape != (n_bits, n_kernels):
        raise ValueError(f"kernel_weights has shape {weights.shape}; it must be {allowed}.")
    norms = np.linalg.norm(weights, ord=np.inf if p > UNWEIGHTED_ABOVE else p, axis=1)
    if not np.isfinite(weights).all() or (weights < 0).any() or (norms > 1 + 1e-9).any():
        raise ValueError(
            f"kernel_weights has negative entries or rows of {p:g}-norm up to {norms.max():.3g}; weights must be "
            f">= 0 with norms of at most 1. Divide each row by its {p:g}-norm."
        )
    if (norms == 0).any():
        raise ValueError("kernel_weights has rows of zeros; every bit needs at least one kernel. Use None for equal.")
    return weights.copy()


def check_assignments(initial_assignments: ArrayLike, labels: np.ndarray, n_codewords: int) -> np.ndarray:
    """Return a codeword index for each row: given labels first, the user's choice for unlabeled rows."""
    given = np.asarray(initial_assignments)
    if given.shape != labels.shape or given.dtype.kind not in "iu":
        raise ValueError(
            f"initial_assignments has dtype {given.dtype} and shape {given.shape}; it must hold one codeword index "
            f"(an integer) per row, shape {labels.shape}."
        )
    chosen = np.where(labels >= 0, labels, given).astype(np.int64)
    if chosen.min() < 0 or chosen.max() >= n_codewords:
        raise ValueError(
            f"initial_assignments goes from {chosen.min()} to {chosen.max()} on the unlabeled rows; codeword "
            f"indices go from 0 to {n_codewords - 1}."
        )
    return chosen
