"""Fewer support rows for hash functions: their scores are learned anew by a smaller kernel expansion.

A code costs one evaluation of the kernels per support row, and most rows of a training set are support rows. Rows of
numbers are replaced by fewer ones that may lie anywhere, under one Gaussian, by gradient descent. Other samples cannot
move: the best are chosen, one by one, and the kernels stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_random_state

from .._threads import single_threaded_blas
from .._types import Seed
from .._validation import check_integer
from ..codes import BinaryCodes
from ..kernels import Kernel, OnColumns, is_built_in, kernel_values, view_scales
from ..solvers.ridge import least_squares
from .chosen_rows import choose_columns
from .expansion import Expansion
from .moved_rows import move_rows
from .samples import Precomputed, Samples, SparseVectors, Vectors

__all__ = ["Compressed", "compress_expansion"]

_ROWS_PER_KEPT_ROW = 10  # if nobody says how many to keep; on 10,000 rows of MNIST this costs .0002 of precision at 10
_ROWS_PER_HELD_OUT_ROW = 5  # in the trial from which the agreement is estimated
_NOISY_COPIES = 3  # of each row: more take longer, and fewer leave the scores around a row to chance
_NOISE = 0.5  # in standard deviations of the features
_WARN_BELOW_AGREEMENT = 0.95  # one bit in twenty changes: time to keep more rows
_CALLER_OF_COMPRESS = 3  # stack level


@dataclass(frozen=True, slots=True)
class Compressed:
    """A smaller expansion, the norm of each of its functions, and an estimate of the share of code bits as before.

    The estimate comes from a trial: the same is done without a fifth of the rows, and codes are compared on these.
    """

    expansion: Expansion
    norms: np.ndarray
    agreement: float

    def learned(self) -> dict[str, Any]:
        """Return what changes in a hasher, by the names of its learned attributes."""
        return {
            "kernels_": list(self.expansion.kernels),
            "kernel_weights_": self.expansion.weights,
            "support_": self.expansion.support,
            "support_samples_": self.expansion.kept,
            "dual_coef_": self.expansion.coefficients,
            "intercept_": self.expansion.intercept,
            "norms_": self.norms,
            "agreement_": self.agreement,
        }


@dataclass(frozen=True, slots=True)
class _Rows:
    """Samples on which scores are compared: support rows, which may be kept, and further ones."""

    support: np.ndarray
    further: np.ndarray

    @property
    def all(self) -> np.ndarray:
        return np.concatenate([self.support, self.further.astype(self.support.dtype, copy=False)])

    def split(self, rng: np.random.RandomState) -> tuple[_Rows, _Rows]:
        """Return most of the rows and a random rest, at least one support row in each."""
        orders = rng.permutation(len(self.support)), rng.permutation(len(self.further))
        sizes = max(1, len(self.support) // _ROWS_PER_HELD_OUT_ROW), len(self.further) // _ROWS_PER_HELD_OUT_ROW
        rest = _Rows(self.support[orders[0][: sizes[0]]], self.further[orders[1][: sizes[1]]])
        return _Rows(self.support[orders[0][sizes[0] :]], self.further[orders[1][sizes[1] :]]), rest


def compress_expansion(
    expansion: Expansion,
    n_support: int | None,
    further: Samples | None,
    random_state: Seed,
    codes_of: Callable[[np.ndarray], BinaryCodes] = BinaryCodes.from_scores,
) -> Compressed:
    """Return an expansion of ``n_support`` support rows whose scores are near those of the given one.

    ``further`` are samples, besides the support rows, on which the scores are compared. ``codes_of`` makes codes of
    the scores.
    """
    n_support = _check_n_support(expansion, n_support)
    may_move = expansion.samples_of is Vectors and all(map(is_built_in, expansion.kernels))
    fit = _with_moved_rows if may_move else _with_chosen_rows
    if further is not None and issparse(further.values):
        raise ValueError("X is a sparse matrix; compress compares scores on dense rows. Give some rows as X.toarray().")
    rows = _Rows(expansion.kept, expansion.kept[:0] if further is None else further.values)
    with single_threaded_blas():
        small = fit(expansion, rows, n_support, check_random_state(random_state))
        norms = _norms(small.coefficients, _mean_kernel(small, small.kept))
        seen, unseen = rows.split(np.random.RandomState(0))
        trial = fit(expansion, seen, n_support, np.random.RandomState(0))
    compressed = Compressed(small, norms, _agreement(expansion, trial, unseen.all, codes_of))
    if compressed.agreement < _WARN_BELOW_AGREEMENT:
        warnings.warn(
            f"With {len(small.kept)} of {len(expansion.kept)} support rows, only about {compressed.agreement:.1%} of "
            "the code bits stay the same. Keep more rows, or give compress more samples (X) to learn from.",
            UserWarning,
            stacklevel=_CALLER_OF_COMPRESS,
        )
    return compressed


def _check_n_support(expansion: Expansion, n_support: int | None) -> int:
    if expansion.samples_of is Precomputed:
        raise ValueError(
            "This hasher was fitted on precomputed kernels and holds no samples, so it cannot be compressed. Fit it on "
            "the samples with kernels=[function], or on the kernel matrix of fewer rows."
        )
    if expansion.samples_of is SparseVectors:
        raise ValueError(
            "This hasher was fitted on sparse rows, which compress cannot move. Fit it on dense rows with fewer "
            "columns, for example from sklearn.decomposition.TruncatedSVD."
        )
    n_before = len(expansion.support)
    if n_before < 2:
        raise ValueError(f"This hasher has {n_before} support row(s): there is nothing to compress. Use it as it is.")
    if n_support is None:
        return max(1, n_before // _ROWS_PER_KEPT_ROW)
    n_support = check_integer(n_support, "n_support", low=1)
    if n_support >= n_before:
        raise ValueError(
            f"n_support is {n_support}, but this hasher has {n_before} support rows already. Choose fewer than "
            f"{n_before}, or use the hasher as it is."
        )
    return n_support


def _with_moved_rows(expansion: Expansion, rows: _Rows, n_support: int, rng: np.random.RandomState) -> Expansion:
    # Around a row, too, the scores must be as before.
    nearby = np.concatenate([rows.all, _noisy_copies(rows.all, rng)])
    targets = _targets(expansion, nearby)
    # The one Gaussian sees every view in its own unit, as much as it weighs.
    scales = view_scales(expansion.kernels, expansion.mean_weights, rows.support)
    if scales is not None:
        nearby = nearby * scales.astype(nearby.dtype)
    centers, kernel, coefficients, intercept = move_rows(nearby, targets, n_support, rng)
    kernels: list[Kernel] = [kernel]
    if scales is not None:
        seen = np.flatnonzero(scales)
        kernels = [OnColumns(kernel, seen, scales=scales[seen])]
        centers = np.divide(centers, scales, out=np.zeros_like(centers), where=scales > 0)
    return replace(
        expansion,
        kernels=kernels,
        weights=np.ones((*expansion.weights.shape[:-1], 1)),
        support=np.arange(len(centers)),
        kept=centers,
        coefficients=coefficients,
        intercept=intercept,
    )


def _with_chosen_rows(expansion: Expansion, rows: _Rows, n_support: int, rng: np.random.RandomState) -> Expansion:
    weights = np.broadcast_to(expansion.mean_weights, expansion.weights.shape).copy()
    candidates = replace(expansion, weights=weights, kept=rows.support)
    targets, values = _targets(expansion, rows.all), _mean_kernel(candidates, rows.all)
    chosen = choose_columns(values, targets, n_support)
    coefficients, intercept = least_squares(values[:, chosen], targets)
    kept, support = rows.support[chosen], np.arange(len(chosen))
    return replace(candidates, support=support, kept=kept, coefficients=coefficients, intercept=intercept)


def _targets(expansion: Expansion, rows: np.ndarray) -> np.ndarray:
    # Only the sign of a score is kept in a code: how far it lies beyond the margin need not be learned.
    return np.clip(expansion.scores(expansion.samples_of(rows)), -1.0, 1.0)


def _noisy_copies(rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    deviations = rows.std(axis=0, dtype=np.float64)
    noisy = [rows + _NOISE * deviations * rng.standard_normal(rows.shape) for _ in range(_NOISY_COPIES)]
    return np.concatenate(noisy).astype(rows.dtype)


def _mean_kernel(expansion: Expansion, rows: np.ndarray) -> np.ndarray:
    """Return the kernel of an expansion whose bits share one, (n_rows, n_support), in float64."""
    return np.tensordot(expansion.mean_weights, kernel_values(expansion.kernels, rows, expansion.kept), axes=1)


def _norms(coefficients: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the norm of each function; rounding may make the square of a tiny one negative."""
    return np.sqrt(np.maximum(np.einsum("bs,bs->b", coefficients @ gram, coefficients), 0.0))


def _agreement(
    expansion: Expansion, small: Expansion, rows: np.ndarray, codes_of: Callable[[np.ndarray], BinaryCodes]
) -> float:
    """Return the share of code bits on some rows in which two expansions agree."""
    codes = [codes_of(each.scores(each.samples_of(rows))).to_signs() for each in (expansion, small)]
    return float(np.mean(codes[0] == codes[1]))
