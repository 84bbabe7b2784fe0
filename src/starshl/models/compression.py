"""Fewer support rows for a fitted StarSHL: its scores are learned anew by a smaller kernel expansion.

A code costs one evaluation of the kernels per support row, and most rows of a training set are support rows. Rows of
numbers are replaced by fewer ones that may lie anywhere, under one Gaussian, found by gradient descent. Other samples
cannot move: the best are chosen, one by one, and the kernels stay.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._threads import single_threaded_blas
from .._types import SamplesLike, Seed
from .._validation import check_integer
from ..codes import BinaryCodes
from ..kernels import Gaussian, Kernel, is_built_in
from ..kernels.anchors import mean_squared_distance
from ..solvers import hinge_distances
from ..solvers.ridge import FeatureRidge
from .samples import SAMPLE_TYPES, Precomputed, Samples, Vectors

if TYPE_CHECKING:
    from .star_shl import StarSHL

__all__ = ["compress_star_shl"]

Hasher = TypeVar("Hasher", bound="StarSHL")

_SHARE = 10  # support rows for each one that is kept, if nobody says how many
_RIDGE = 1e-6  # of the mean square of a feature
_START_WIDTH = 0.25  # of the Gaussian, in root mean squared distances between rows
_NOISY_COPIES, _NOISE = 3, 0.5  # of each row, and in standard deviations of its features
_BATCH = 128
_LOW_AGREEMENT = 0.95  # of the code bits, below which a user is warned
_LEAST_EPOCHS, _LEAST_STEPS = 10, 3000
# Step sizes: a row's entries in standard deviations of their features, coefficients of scores that are cut to [-1, 1].
_ROW_STEP, _COEFFICIENT_STEP, _RATE_STEP = 0.1, 0.03, 0.01


def compress_star_shl(hasher: Hasher, n_support: int | None, X: SamplesLike | None, random_state: Seed) -> Hasher:
    """Return a fitted hasher of ``n_support`` support rows whose scores are near those of ``hasher``."""
    check_is_fitted(hasher)
    n_support = _check_n_support(hasher, n_support)
    support = hasher.support_samples_
    rows = support
    if X is not None:
        further = hasher._read(X).values
        rows = np.concatenate([support, further.astype(support.dtype, copy=False)])
    rng = check_random_state(random_state)
    samples_of = SAMPLE_TYPES[hasher.sample_kind_]
    may_move = samples_of is Vectors and all(is_built_in(kernel) for kernel in hasher.kernels_)
    held_out = rows
    if may_move:
        rows = _with_noisy_copies(rows, rng)
        # The smaller hasher has seen the rows themselves, so it is judged on copies with other noise.
        held_out = _with_noisy_copies(held_out, np.random.RandomState(0))[len(held_out) :]
    # Only the sign of a score is kept in a code: how far it lies beyond the margin need not be learned.
    targets = np.clip(hasher._scores_of(samples_of(rows)), -1.0, 1.0)
    kernels: list[Kernel]
    with single_threaded_blas():
        if may_move:
            new_support, kernel, coefficients, intercept = _move_rows(rows, targets, n_support, rng)
            kernels, weights, gram = [kernel], np.ones(1), kernel(new_support, new_support)
        else:
            kernels, weights = list(hasher.kernels_), hasher.kernel_weights_.mean(axis=0)
            values = _mix(kernels, weights, rows, support)
            chosen = _choose_columns(values, targets, n_support)
            new_support, gram = support[chosen], values[np.ix_(chosen, chosen)]
            coefficients, intercept = _regress(values[:, chosen], targets)
        norms = _norms(coefficients, gram)
    small = _rebuilt(
        hasher,
        kernels_=kernels,
        kernel_weights_=np.tile(weights, (len(coefficients), 1)),
        support_=np.arange(len(new_support)),
        support_samples_=new_support,
        dual_coef_=coefficients,
        intercept_=intercept,
        norms_=norms,
    )
    small.agreement_ = _agreement(hasher, small, samples_of(held_out))
    if small.agreement_ < _LOW_AGREEMENT:
        warnings.warn(
            f"With {len(new_support)} of {len(hasher.support_)} support rows, only {small.agreement_:.1%} of the "
            "code bits are as before. Keep more rows, or give compress more samples (X) to learn from.",
            UserWarning,
            stacklevel=3,
        )
    return small


def _agreement(hasher: StarSHL, small: StarSHL, rows: Samples) -> float:
    """Return the share of code bits on some rows in which two hashers agree."""
    codes = [BinaryCodes.from_scores(each._scores_of(rows)).to_signs() for each in (hasher, small)]
    return float(np.mean(codes[0] == codes[1]))


def _check_n_support(hasher: StarSHL, n_support: int | None) -> int:
    if SAMPLE_TYPES[hasher.sample_kind_] is Precomputed:
        raise ValueError(
            "This hasher was fitted on precomputed kernels and holds no samples, so it cannot be compressed. Fit it on "
            "the samples with kernels=[function], or on the kernel matrix of fewer rows."
        )
    n_found = len(hasher.support_)
    if n_found < 2:
        raise ValueError(f"This hasher has {n_found} support row(s): there is nothing to compress. Use it as it is.")
    if n_support is None:
        return max(1, n_found // _SHARE)
    n_support = check_integer(n_support, "n_support", low=1)
    if n_support >= n_found:
        raise ValueError(
            f"n_support is {n_support}, but this hasher has {n_found} support rows already. Choose fewer than "
            f"{n_found}, or use the hasher as it is."
        )
    return n_support


def _with_noisy_copies(rows: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return the rows and copies with noise: around a row, too, the scores must be those of the hasher."""
    deviations = rows.std(axis=0, dtype=np.float64)
    noisy = [rows + _NOISE * deviations * rng.standard_normal(rows.shape) for _ in range(_NOISY_COPIES)]
    return np.concatenate([rows, *noisy]).astype(rows.dtype)


def _move_rows(
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
    coefficients, intercept = _regress(np.exp(-np.exp(log_rate) * _squared(points, centers)), targets)
    found = [centers, coefficients.T, intercept, np.array(log_rate)]
    found = [np.array(values, dtype=np.float32, order="C") for values in found]
    steps = (_ROW_STEP * points.std(axis=0), _COEFFICIENT_STEP, _COEFFICIENT_STEP, _RATE_STEP)

    n_batches = -(-len(points) // _BATCH)
    n_epochs = max(_LEAST_EPOCHS, -(-_LEAST_STEPS // n_batches))
    adam = _Adam(found, steps, n_epochs * n_batches)
    for _ in range(n_epochs):
        order = rng.permutation(len(points))
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            adam.step(_gradients(points[batch], targets[batch], *found))
    centers, coefficients, intercept, log_rate = (values.astype(np.float64) for values in found)
    width = float(np.sqrt(0.5 / np.exp(log_rate)))
    return (origin + scale * centers).astype(rows.dtype), Gaussian(scale * width), coefficients.T, intercept


def _gradients(
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
        forget_mean, forget_square = 0.9, 0.99
        # Both averages start at zero, which this makes up for.
        scale = left * np.sqrt(1 - forget_square**self.n_done) / (1 - forget_mean**self.n_done)
        for value, step, gradient, mean, square in zip(
            self.values, self.steps, gradients, self.means, self.squares, strict=True
        ):
            mean += np.float32(1 - forget_mean) * (gradient - mean)
            square += np.float32(1 - forget_square) * (gradient**2 - square)
            value -= np.float32(scale) * step * mean / (np.sqrt(square) + np.float32(1e-12))


def _mix(kernels: list[Kernel], weights: np.ndarray, rows: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Return the weighted sum of the kernels, (n_rows, n_support), in float64."""
    values = np.zeros((len(rows), len(support)))
    for kernel, weight in zip(kernels, weights, strict=True):
        values += weight * kernel(rows, support)
    return values


def _choose_columns(values: np.ndarray, targets: np.ndarray, n_chosen: int) -> np.ndarray:
    """Return the columns that, each in its turn, lower the squared error of a regression on those chosen most.

    Orthogonal least squares (Chen, Cowan and Grant 1991): a column counts by its part orthogonal to those before it.
    Fewer are returned if they span the rest. O(n_rows n_columns n_chosen).
    """
    values = values - values.mean(axis=0)
    norms = np.einsum("ij,ij->j", values, values)
    negligible = 1e-10 * norms.max()
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


def _regress(features: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of shape (n_bits, n_features) and intercepts of least squares."""
    # Just enough of a penalty for rows that are equal; in units of the features, which may be of any size.
    size = np.sqrt(np.mean(np.square(features, dtype=np.float64))) or 1.0
    regression = FeatureRidge(features / size, _RIDGE * len(features))
    coefficients, intercept = regression.split(regression.solve(targets))
    return coefficients / size, intercept


def _norms(coefficients: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the norm of each kernel expansion; rounding may make the square of a tiny one negative."""
    return np.sqrt(np.maximum(np.einsum("bs,bs->b", coefficients @ gram, coefficients), 0.0))


def _rebuilt(hasher: Hasher, **replaced: Any) -> Hasher:
    """Return a hasher of the same settings, classes and codewords, to which its support is all the training rows."""
    small: Hasher = clone(hasher)
    replaced |= {"assignments_": None, "transduction_": None}
    kept = {name: value for name, value in hasher._learned_state().items() if name not in replaced}
    for name, value in (deepcopy(kept) | replaced).items():
        setattr(small, name, value)
    scores = small._scores_of(SAMPLE_TYPES[small.sample_kind_](small.support_samples_))
    small.assignments_ = hinge_distances(scores, small.codewords_).argmin(axis=1)
    small.transduction_ = small.classes_[small._nearest_classes(scores)].astype(hasher.transduction_.dtype)
    return small
