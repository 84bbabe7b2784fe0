r"""From class scores to probabilities that mean what they say.

Squared loss pulls the scores of sure rows to one, however sure they are, so equal steps of a score do not mean equal
steps of the log odds. Bending the scores by one parameter, and shifting classes a little, mends that:

.. math:: p = \mathrm{softmax}(T z), \qquad z_g = \mathrm{asinh}(\kappa h_g) / \kappa + \beta_g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

# Of the logarithms of class odds, before any row is seen: if small, it keeps classes of few rows from chance shifts.
_SHIFT_DEVIATION = 0.1
_MAX_ROWS = 20_000  # more do not change the parameters
# Bounds and start of the search.
_LOG_TEMPERATURES = (0.0, np.log(500.0))
_LOG_CURVATURES = (np.log(0.05), np.log(20.0))
_START = np.log([10.0, 3.0])


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
    loss = CalibrationLoss(scores.astype(np.float64), index, weights)
    n_classes = scores.shape[1]
    bounds = [_LOG_TEMPERATURES, _LOG_CURVATURES] + [(None, None)] * n_classes
    start = np.concatenate([_START, np.zeros(n_classes)])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 100}).x
    temperature, curvature = (float(number) for number in np.exp(found[:2]))
    return Calibration(temperature, curvature, found[2:] / temperature)


class CalibrationLoss:
    """The mean log loss plus the prior's share, over log T, log kappa and the shifts of the logarithms of odds."""

    def __init__(self, scores: np.ndarray, index: np.ndarray, weights: np.ndarray):
        self.scores, self.index = scores, index
        self.weights = weights / weights.sum()
        # Rows of unequal weight count as fewer rows (Kish).
        self.prior = 0.5 / _SHIFT_DEVIATION**2 * float(np.sum(self.weights**2))

    def __call__(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        temperature, curvature = np.exp(values[:2])
        shifts = values[2:]
        scaled = curvature * self.scores
        bent = np.arcsinh(scaled) / curvature
        logits = temperature * bent + shifts
        rows = np.arange(len(logits))
        totals = logsumexp(logits, axis=1, keepdims=True)
        loss = float(self.weights @ (totals[:, 0] - logits[rows, self.index]))
        errors = np.exp(logits - totals)
        errors[rows, self.index] -= 1.0
        errors *= self.weights[:, None]
        by_curvature = self.scores / np.sqrt(1.0 + scaled**2) - bent
        gradient = np.concatenate(
            [
                [temperature * np.sum(errors * bent), temperature * np.sum(errors * by_curvature)],
                errors.sum(axis=0) + 2 * self.prior * shifts,
            ]
        )
        return loss + self.prior * float(shifts @ shifts), gradient
