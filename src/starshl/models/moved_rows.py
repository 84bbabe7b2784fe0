"""Replace rows of numbers by fewer ones that may lie anywhere, under one Gaussian, by gradient descent."""

from __future__ import annotations

import numpy as np

from ..kernels import Gaussian
from ..kernels.anchors import mean_squared_distance
from ..solvers.ridge import least_squares

__all__ = ["move_rows"]

_START_WIDTH = 0.25  # of the Gaussian, in root mean squared distances between rows; the descent learns the width
_BATCH_ROWS = 128  # for Adam; smaller batches take longer, larger ones take fewer steps per epoch
_MIN_EPOCHS, _MIN_STEPS = 10, 3000  # whichever takes longer: few rows have few steps per epoch
# Step sizes: a row's entries in standard deviations of their features, coefficients of scores that are cut to [-1, 1].
_ROW_STEP, _COEFFICIENT_STEP, _RATE_STEP = 0.1, 0.03, 0.01
# Of Adam's running averages. The .999 of its paper would look back over a third of 3,000 steps.
_MEAN_DECAY, _SQUARE_DECAY = 0.9, 0.99


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
    n_epochs = max(_MIN_EPOCHS, -(-_MIN_STEPS // n_batches))
    adam = _Adam(variables, steps, n_epochs * n_batches)
    for _ in range(n_epochs):
        order = rng.permutation(len(points))
        for first in range(0, len(order), _BATCH_ROWS):
            batch = order[first : first + _BATCH_ROWS]
            adam.step(_gradients(points[batch], targets[batch], *variables))
    centers, coefficients, intercept, log_rate = (values.astype(np.float64) for values in variables)
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
        # Both averages start at zero, which this makes up for.
        scale = left * np.sqrt(1 - _SQUARE_DECAY**self.n_done) / (1 - _MEAN_DECAY**self.n_done)
        for value, step, gradient, mean, square in zip(
            self.values, self.steps, gradients, self.means, self.squares, strict=True
        ):
            mean += np.float32(1 - _MEAN_DECAY) * (gradient - mean)
            square += np.float32(1 - _SQUARE_DECAY) * (gradient**2 - square)
            value -= np.float32(scale) * step * mean / (np.sqrt(square) + np.float32(1e-12))
