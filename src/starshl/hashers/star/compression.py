"""Fewer support rows for hash functions: their scores are learned anew by a smaller kernel expansion.

A code costs one evaluation of the kernels per support row, and most rows of a training set are support rows. Rows of
numbers are replaced by fewer ones that may lie anywhere, under one Gaussian, by gradient descent. Other samples cannot
move: the best are chosen, one by one, and the kernels stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_random_state

from ..._common.threads import single_threaded_blas
from ..._common.validation import Seed, check_integer
from ..._common.warn import warn_caller
from ...codes.binary import BinaryCodes
from ...learning.kernels.anchors import mean_squared_distance
from ...learning.kernels.expansion import kernel_values
from ...learning.kernels.kernel import Kernel, is_built_in
from ...learning.kernels.vectors import Gaussian
from ...learning.kernels.views import OnColumns, view_scales
from ...learning.solvers.ridge import least_squares
from .expansion import Expansion
from .samples import Precomputed, Samples, SparseVectors, Vectors

_ROWS_PER_SUPPORT_ROW = (
    10  # if nobody says how many to keep; on 10,000 rows of MNIST this costs .0002 of precision at 10
)
_ROWS_PER_HELD_OUT_ROW = 5  # in the trial from which the agreement is estimated
_NOISY_COPIES = 3  # of each row: more take longer, and fewer leave the scores around a row to chance
_NOISE = 0.5  # in standard deviations of the features
_WARN_BELOW_AGREEMENT = 0.95  # one bit in twenty changes: time to keep more rows
_NEGLIGIBLE = 1e-10  # share of the largest squared norm at which what is left of a column is rounding
_START_WIDTH = 0.25  # of the Gaussian, in root mean squared distances between rows; the descent learns the width
_BATCH_ROWS = 128  # for Adam; smaller batches take longer, larger ones take fewer steps per epoch
# Tests replace both: most of what they check needs no long descent.
MIN_EPOCHS, MIN_STEPS = 10, 3000  # whichever takes longer: few rows have few steps per epoch
# Step sizes: a row's entries in standard deviations of their features, coefficients of scores that are cut to [-1, 1].
_ROW_STEP, _COEFFICIENT_STEP, _RATE_STEP = 0.1, 0.03, 0.01
# Of Adam's running averages. The .999 of its paper would look back over a third of 3,000 steps.
_MEAN_DECAY, _SQUARE_DECAY = 0.9, 0.99


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
            "support_samples_": self.expansion.support_samples,
            "dual_coef_": self.expansion.coefficients,
            "intercept_": self.expansion.intercept,
            "norms_": self.norms,
            "agreement_": self.agreement,
        }


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
    rows = _RowPool(expansion.support_samples, expansion.support_samples[:0] if further is None else further.values)
    with single_threaded_blas():
        small = fit(expansion, rows, n_support, check_random_state(random_state))
        norms = _norms(small.coefficients, _mean_kernel(small, small.support_samples))
        seen, unseen = rows.split(np.random.RandomState(0))
        trial = fit(expansion, seen, n_support, np.random.RandomState(0))
    compressed = Compressed(small, norms, _agreement(expansion, trial, unseen.all, codes_of))
    if compressed.agreement < _WARN_BELOW_AGREEMENT:
        warn_caller(
            f"With {len(small.support)} of {len(expansion.support)} support rows, only about "
            f"{compressed.agreement:.1%} of the code bits stay the same. Keep more rows, or give compress more samples "
            "(X) to learn from.",
        )
    return compressed


@dataclass(frozen=True, slots=True)
class _RowPool:
    """Samples on which scores are compared: support rows, which may be kept, and further ones."""

    support: np.ndarray
    further: np.ndarray

    @property
    def all(self) -> np.ndarray:
        return np.concatenate([self.support, self.further.astype(self.support.dtype, copy=False)])

    def split(self, rng: np.random.RandomState) -> tuple[_RowPool, _RowPool]:
        """Return most of the rows and a random rest, at least one support row in each."""
        orders = rng.permutation(len(self.support)), rng.permutation(len(self.further))
        sizes = max(1, len(self.support) // _ROWS_PER_HELD_OUT_ROW), len(self.further) // _ROWS_PER_HELD_OUT_ROW
        rest = _RowPool(self.support[orders[0][: sizes[0]]], self.further[orders[1][: sizes[1]]])
        return _RowPool(self.support[orders[0][sizes[0] :]], self.further[orders[1][sizes[1] :]]), rest


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
        return max(1, n_before // _ROWS_PER_SUPPORT_ROW)
    n_support = check_integer(n_support, "n_support", low=1)
    if n_support >= n_before:
        raise ValueError(
            f"n_support is {n_support}, but this hasher has {n_before} support rows already. Choose fewer than "
            f"{n_before}, or use the hasher as it is."
        )
    return n_support


def _with_moved_rows(expansion: Expansion, rows: _RowPool, n_support: int, rng: np.random.RandomState) -> Expansion:
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
        support_samples=centers,
        coefficients=coefficients,
        intercept=intercept,
    )


def _with_chosen_rows(expansion: Expansion, rows: _RowPool, n_support: int, rng: np.random.RandomState) -> Expansion:
    weights = np.broadcast_to(expansion.mean_weights, expansion.weights.shape).copy()
    candidates = replace(expansion, weights=weights, support_samples=rows.support)
    targets, values = _targets(expansion, rows.all), _mean_kernel(candidates, rows.all)
    chosen = choose_columns(values, targets, n_support)
    coefficients, intercept = least_squares(values[:, chosen], targets)
    return replace(
        candidates,
        support=np.arange(len(chosen)),
        support_samples=rows.support[chosen],
        coefficients=coefficients,
        intercept=intercept,
    )


def _targets(expansion: Expansion, rows: np.ndarray) -> np.ndarray:
    # Only the sign of a score is kept in a code: how far it lies beyond the margin need not be learned.
    return np.clip(expansion.scores(expansion.samples_of(rows)), -1.0, 1.0)


def _noisy_copies(rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    deviations = rows.std(axis=0, dtype=np.float64)
    noisy = [rows + _NOISE * deviations * rng.standard_normal(rows.shape) for _ in range(_NOISY_COPIES)]
    return np.concatenate(noisy).astype(rows.dtype)


def _mean_kernel(expansion: Expansion, rows: np.ndarray) -> np.ndarray:
    """Return the kernel of an expansion whose bits share one, (n_rows, n_support), in float64."""
    return np.tensordot(
        expansion.mean_weights, kernel_values(expansion.kernels, rows, expansion.support_samples), axes=1
    )


def _norms(coefficients: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the norm of each function; rounding may make the square of a tiny one negative."""
    return np.sqrt(np.maximum(np.einsum("bs,bs->b", coefficients @ gram, coefficients), 0.0))


def _agreement(
    expansion: Expansion, small: Expansion, rows: np.ndarray, codes_of: Callable[[np.ndarray], BinaryCodes]
) -> float:
    """Return the share of code bits on some rows in which two expansions agree."""
    codes = [codes_of(each.scores(each.samples_of(rows))).to_signs() for each in (expansion, small)]
    return float(np.mean(codes[0] == codes[1]))


def choose_columns(values: np.ndarray, targets: np.ndarray, n_chosen: int) -> np.ndarray:
    """Return the columns that, each in its turn, lower the squared error of a regression on those chosen most.

    Orthogonal least squares (Chen, Cowan and Grant 1991): a column counts by its part orthogonal to those before it.
    Fewer are returned if they span the rest. O(n_rows n_columns n_chosen).
    """
    values = values - values.mean(axis=0)
    norms = np.einsum("ij,ij->j", values, values)
    negligible = _NEGLIGIBLE * norms.max()
    products = values.T @ (targets - targets.mean(axis=0))
    directions, parts = np.zeros((n_chosen, len(values))), np.zeros((n_chosen, values.shape[1]))
    chosen: list[int] = []
    for n in range(n_chosen):
        # What is left of a chosen column is rounding; so is every column that those chosen already span.
        norms[chosen] = 0.0
        if norms.max() <= negligible:
            break
        gains = np.square(products).sum(axis=1) / np.maximum(norms, negligible)
        best = int(np.where(norms > negligible, gains, -1.0).argmax())
        direction = values[:, best] - parts[:n, best] @ directions[:n]
        length = np.linalg.norm(direction)
        chosen.append(best)
        directions[n] = direction / length
        parts[n] = directions[n] @ values
        norms -= parts[n] ** 2
        products -= np.outer(parts[n], products[best] / length)
    return np.sort(np.array(chosen, dtype=np.int64))


def move_rows(
    rows: np.ndarray, targets: np.ndarray, n_support: int, rng: np.random.RandomState
) -> tuple[np.ndarray, Gaussian, np.ndarray, np.ndarray]:
    r"""Return rows z, a Gaussian, coefficients and intercepts of small mean squared error against the targets.

    .. math:: \sum_n \sum_b \Big(\sum_s a_{bs} \exp(-\gamma \|x_n - z_s\|^2) + \beta_b - t_{nb}\Big)^2

    Adam on batches, over z, a, :math:`\beta` and :math:`\log\gamma`, from random rows and their best coefficients.
    """
    origin = rows.mean(axis=0, dtype=np.float64)
    scale = float(np.sqrt(mean_squared_distance(rows, rows)))
    # In these units float32 has digits enough for a descent, whatever the units of the rows are.
    points = ((rows - origin) / scale).astype(np.float32)
    targets = targets.astype(np.float32)
    centers = points[np.sort(rng.choice(len(points), n_support, replace=False))]
    log_rate = np.log(0.5 / _START_WIDTH**2)
    coefficients, intercept = least_squares(np.exp(-np.exp(log_rate) * _squared(points, centers)), targets)
    variables = [
        np.array(values, dtype=np.float32, order="C") for values in (centers, coefficients.T, intercept, log_rate)
    ]
    steps = (_ROW_STEP * points.std(axis=0), _COEFFICIENT_STEP, _COEFFICIENT_STEP, _RATE_STEP)

    n_batches = -(-len(points) // _BATCH_ROWS)
    n_epochs = max(MIN_EPOCHS, -(-MIN_STEPS // n_batches))
    adam = _Adam(variables, steps, n_epochs * n_batches)
    for _ in range(n_epochs):
        order = rng.permutation(len(points))
        for first in range(0, len(order), _BATCH_ROWS):
            batch = order[first : first + _BATCH_ROWS]
            adam.step(batch_gradients(points[batch], targets[batch], *variables))
    centers, coefficients, intercept, log_rate = (values.astype(np.float64) for values in variables)
    width = float(np.sqrt(0.5 / np.exp(log_rate)))
    return (origin + scale * centers).astype(rows.dtype), Gaussian(scale * width), coefficients.T, intercept


def batch_gradients(
    points: np.ndarray,
    targets: np.ndarray,
    centers: np.ndarray,
    coefficients: np.ndarray,
    intercept: np.ndarray,
    log_rate: np.ndarray,
) -> list[np.ndarray]:
    """Return the gradients of half the mean squared error of a batch."""
    rate = np.exp(log_rate)
    squared = _squared(points, centers)
    values = np.exp(-rate * squared)
    errors = values @ coefficients
    errors += intercept - targets
    errors /= len(points)
    inward = errors @ coefficients.T
    inward *= values
    pull = inward.T @ points
    pull -= inward.sum(axis=0)[:, None] * centers
    return [2 * rate * pull, values.T @ errors, errors.sum(axis=0), -rate * np.vdot(inward, squared)]


def _squared(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return squared distances; rounding may leave a small negative number, which does no harm here."""
    squared = points @ centers.T
    squared *= -2
    squared += np.einsum("ij,ij->i", points, points)[:, None]
    squared += np.einsum("ij,ij->i", centers, centers)
    return squared


class _Adam:
    """Adam (Kingma and Ba 2015) with steps that shrink linearly to zero; it changes the arrays it is given."""

    def __init__(self, values: list[np.ndarray], steps: tuple[float | np.ndarray, ...], n_steps: int):
        self.values, self.steps, self.n_steps = values, steps, n_steps
        self.means = [np.zeros_like(value) for value in values]
        self.squares = [np.zeros_like(value) for value in values]
        self.n_done = 0

    def step(self, gradients: list[np.ndarray]) -> None:
        left = 1.0 - self.n_done / self.n_steps
        self.n_done += 1
        # Both averages start at zero, which this makes up for.
        scale = left * np.sqrt(1 - _SQUARE_DECAY**self.n_done) / (1 - _MEAN_DECAY**self.n_done)
        for value, step, gradient, mean, square in zip(
            self.values, self.steps, gradients, self.means, self.squares, strict=True
        ):
            mean += np.float32(1 - _MEAN_DECAY) * (gradient - mean)
            square += np.float32(1 - _SQUARE_DECAY) * (gradient**2 - square)
            value -= np.float32(scale) * step * mean / (np.sqrt(square) + np.float32(1e-12))
