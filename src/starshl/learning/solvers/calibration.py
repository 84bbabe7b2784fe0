r"""From class scores to probabilities that mean what they say.

Squared loss pulls the scores of sure rows to one, however sure they are, so equal steps of a score do not mean equal
steps of the log odds. Bending the scores by one parameter, and shifting classes a little, mends that:

.. math:: p = \mathrm{softmax}(T z), \qquad z_g = \mathrm{asinh}(\kappa h_g) / \kappa + \beta_g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ..._common.threads import tiles

# Of the logarithms of class odds, before any row is seen: if small, it keeps classes of few rows from chance shifts.
_SHIFT_DEVIATION = 0.1
_MAX_ROWS = 20_000  # more do not change the parameters
_TILE_ENTRIES = 1 << 15  # scores whose loss is computed at a time
# Bounds and start of the search.
_LOG_TEMPERATURES = (0.0, np.log(500.0))
_LOG_CURVATURES = (np.log(0.05), np.log(20.0))
_START = np.log([10.0, 3.0])
USUAL_CURVATURE = 3.0  # where no labels can tell
_MOST_BENT = 80.0  # of the argument of sinh: more leaves the range of float32


@dataclass(frozen=True, slots=True)
class Calibration:
    """Temperature, curvature (zero: straight) and the shift of each class, in units of the scores."""

    temperature: float
    curvature: float
    shifts: np.ndarray

    def bend(self, scores: np.ndarray) -> np.ndarray:
        """Return z above, in the precision of the scores; softmax(temperature * z) are the probabilities."""
        shifts = self.shifts.astype(scores.dtype)
        if self.curvature == 0:
            return scores + shifts
        curvature = scores.dtype.type(self.curvature)
        return np.arcsinh(curvature * scores) / curvature + shifts

    def scores_of(self, probabilities: np.ndarray) -> np.ndarray:
        """Return scores that have these positive probabilities."""
        bent = np.log(probabilities * probabilities.shape[1]) / self.temperature - self.shifts
        if self.curvature == 0:
            return np.asarray(bent)
        return np.asarray(np.sinh(np.clip(self.curvature * bent, -_MOST_BENT, _MOST_BENT)) / self.curvature)


def fit_calibration(scores: np.ndarray, index: np.ndarray, weights: np.ndarray) -> Calibration:
    """Return the calibration of least weighted log loss, with a Gaussian prior on the shifts.

    Parameters
    ----------
    scores : array of shape (n, n_classes), of rows that did not take part in their own scores
    index : array of shape (n,), their classes
    weights : array of shape (n,)
    """
    if len(scores) > _MAX_ROWS:
        few = np.linspace(0, len(scores) - 1, _MAX_ROWS).astype(np.int64)
        scores, index, weights = scores[few], index[few], weights[few]
    loss = CalibrationLoss(scores, index, weights)
    n_classes = scores.shape[1]
    bounds = [_LOG_TEMPERATURES, _LOG_CURVATURES] + [(None, None)] * n_classes
    start = np.concatenate([_START, np.zeros(n_classes)])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 100}).x
    temperature, curvature = (float(number) for number in np.exp(found[:2]))
    return Calibration(temperature, curvature, found[2:] / temperature)


class CalibrationLoss:
    """The mean log loss plus the prior's share, over log T, log kappa and the shifts of the logarithms of odds.

    Rows pass in tiles that stay in the cache: of many classes, whole matrices would cost more than what is done to
    them.
    """

    def __init__(self, scores: np.ndarray, index: np.ndarray, weights: np.ndarray):
        self.scores, self.index = scores, index
        self.weights = weights / weights.sum()
        # Rows of unequal weight count as fewer rows (Kish).
        self.prior = 0.5 / _SHIFT_DEVIATION**2 * float(np.sum(self.weights**2))

    def __call__(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        shifts = values[2:]
        loss, slopes = self.prior * float(shifts @ shifts), np.zeros(len(values))
        slopes[2:] = 2 * self.prior * shifts
        for rows in tiles(len(self.scores), max(1, _TILE_ENTRIES // self.scores.shape[1])):
            loss += self._add_rows(rows, values, slopes)
        return loss, slopes

    def _add_rows(self, rows: slice, values: np.ndarray, slopes: np.ndarray) -> float:
        """Return the loss of some rows, and add its gradient to the slopes."""
        temperature, curvature = np.exp(values[:2])
        scores, weights = self.scores[rows].astype(np.float64), self.weights[rows]
        own = np.arange(len(scores)), self.index[rows]
        scaled = curvature * scores
        bent = np.arcsinh(scaled)
        bent /= curvature
        errors = temperature * bent
        errors += values[2:]
        errors -= errors.max(axis=1, keepdims=True)
        own_logits = errors[own]
        np.exp(errors, out=errors)
        totals = errors.sum(axis=1)
        errors *= (weights / totals)[:, None]
        errors[own] -= weights
        by_temperature = float(np.vdot(errors, bent))
        scaled *= scaled
        scaled += 1.0
        scores /= np.sqrt(scaled, out=scaled)
        slopes[0] += temperature * by_temperature
        slopes[1] += temperature * (float(np.vdot(errors, scores)) - by_temperature)
        slopes[2:] += errors.sum(axis=0)
        return float(weights @ (np.log(totals) - own_logits))
