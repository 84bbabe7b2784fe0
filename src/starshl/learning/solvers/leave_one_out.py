r"""Kernel weights, ridge and temperature by leave-one-out likelihood.

Kernel ridge regression of one-hot class vectors Y has scores that each row would get from a fit without it:

.. math:: A = \Big(\sum_m \theta_m K_m + 1 + \rho D \sum_m \theta_m\Big)^{-1}, \qquad \alpha = A Y, \qquad
          h_n = Y_n - \alpha_n / A_{nn},

where D holds one multiplier of the ridge per row; the ridge is a share of the kernels' diagonal. These scores cost one
factorization, so what a fit has to choose can be chosen by the log loss of softmax(T h), with its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from scipy.optimize import minimize
from scipy.special import logsumexp

from ..._common.threads import single_threaded_blas, tiles
from ..linalg import inverse_of_kernel

SMALLEST_RIDGE = 1e-5  # share of the kernels' diagonal: at 1e-6 a Cholesky factorization in float32 fails
_TEMPERATURES = (1.0, 200.0)  # outside, codes hardly depend on the temperature
_START_RIDGE, _START_TEMPERATURE = 0.1, 5.0  # a start at a ridge of 1e-3 can end in a worse optimum
_PENALTY = 1e-5  # of the squared logarithms of the kernel weights, which keeps useless kernels from running away
_N_STEPS = 15  # of L-BFGS; the loss hardly changes after them
_SMALLEST_SHARE = 0.005  # of the sum of the weights, below which a kernel is dropped
_DROPPED_LOSS = 1.02  # times the loss, up to which kernels of small weight are dropped
_SLOPE_BLOCK = 175  # rows: a quarter of those of a search
_LOG_WEIGHTS = (-25.0, 10.0)
_LOG_RIDGES = (np.log(SMALLEST_RIDGE), np.log(1e4))


@dataclass(frozen=True, slots=True)
class Mixture:
    """What the search found: the kernel sum_m weights[m] K_m + constant, its ridge and the temperature."""

    weights: np.ndarray
    constant: float
    ridge: float
    temperature: float


def one_hot(index: np.ndarray, n_classes: int, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return one row per sample with a one in the column of its class.

    Examples
    --------
    >>> one_hot(np.array([1, 0]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    targets = np.zeros((len(index), n_classes), dtype=dtype)
    targets[np.arange(len(index)), index] = 1.0
    return targets


def leave_one_out_scores(targets: np.ndarray, dual: np.ndarray, inverse_diagonal: np.ndarray) -> np.ndarray:
    r"""Return :math:`h_n = Y_n - \alpha_n / A_{nn}`, what a fit without row n predicts for it, as precise as dual."""
    scores = dual / inverse_diagonal.astype(dual.dtype)[:, None]
    return np.subtract(targets, scores, out=scores)


class LeaveOneOutLoss:
    r"""The weighted mean log loss of softmax(T h) over the logarithms of :math:`\theta`, :math:`\rho` and T.

    Parameters
    ----------
    grams : array of shape (n_kernels, n, n)
    index : array of shape (n,), the class of each row
    n_classes : int
    ridge_scale : array of shape (n,), the diagonal of D
    weights : array of shape (n,), weights of the rows in the loss
    """

    def __init__(
        self, grams: np.ndarray, index: np.ndarray, n_classes: int, ridge_scale: np.ndarray, weights: np.ndarray
    ):
        self.n_kernels, self.n_rows = grams.shape[:2]
        self.flat = np.ascontiguousarray(grams, dtype=np.float64).reshape(self.n_kernels, -1)
        # The scores of classes without a row here are zero, whatever the parameters: they are only counted.
        present, columns = np.unique(index, return_inverse=True)
        self.columns, self.n_absent = columns.ravel(), n_classes - len(present)
        self.targets = one_hot(self.columns, len(present))
        self.ridge_scale = ridge_scale
        self.weights = weights / weights.sum()

    def scores(self, theta: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the leave-one-out scores, A, alpha and the diagonal of A; the ridge is a share of the weights' sum."""
        matrix = (theta @ self.flat).reshape(self.n_rows, self.n_rows)
        matrix += 1.0
        matrix.flat[:: self.n_rows + 1] += ridge * theta.sum() * self.ridge_scale
        inverse = inverse_of_kernel(matrix)
        dual = inverse @ self.targets
        diagonal = inverse.diagonal().copy()
        return leave_one_out_scores(self.targets, dual, diagonal), inverse, dual, diagonal

    def log_loss(self, scores: np.ndarray, temperature: float) -> float:
        """Return the weighted mean log loss of scores, without the penalty."""
        tempered = temperature * scores
        return float(self.weights @ self._losses(tempered, self._totals(tempered)))

    def _totals(self, tempered: np.ndarray) -> np.ndarray:
        """Return the logarithms of the sums over all classes."""
        totals = logsumexp(tempered, axis=1)
        return totals if self.n_absent == 0 else np.logaddexp(totals, np.log(self.n_absent))

    def _losses(self, tempered: np.ndarray, totals: np.ndarray) -> np.ndarray:
        return totals - tempered[np.arange(self.n_rows), self.columns]

    def __call__(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return the loss and its gradient.

        With a = diag A, g the derivative of the loss by h, :math:`P = -g / a` and :math:`r_n = g_n \alpha_n / a_n^2`,

        .. math:: \partial / \partial \theta_m = -\langle S,\ K_m + \rho D \rangle, \qquad
                  S = A P \alpha^\top + A\,\mathrm{diag}(r) A,

        and the same with :math:`D \sum_m \theta_m` in the place of :math:`K_m + \rho D` for :math:`\rho`.
        """
        theta, (ridge, temperature) = np.exp(logs[:-2]), np.exp(logs[-2:])
        scores, inverse, dual, diagonal = self.scores(theta, ridge)
        tempered = temperature * scores
        totals = self._totals(tempered)
        loss = float(self.weights @ self._losses(tempered, totals))
        errors = self.weights[:, None] * (np.exp(tempered - totals[:, None]) - self.targets)

        by_score = temperature * errors
        by_dual = -by_score / diagonal[:, None]
        by_diagonal = np.sum(by_score * dual, axis=1) / diagonal**2
        slope = self._slope(inverse, by_diagonal, inverse @ by_dual, dual)
        by_diagonal_sum = -float(slope.diagonal() @ self.ridge_scale)
        by_theta = ridge * by_diagonal_sum - self.flat @ slope.reshape(-1)
        by_ridge = theta.sum() * by_diagonal_sum
        by_temperature = float(np.sum(errors * scores))
        gradient = np.concatenate([theta * by_theta, [ridge * by_ridge, temperature * by_temperature]])
        gradient[:-2] += 2 * _PENALTY * logs[:-2]
        return loss + _PENALTY * float(logs[:-2] @ logs[:-2]), gradient

    def _slope(self, inverse: np.ndarray, by_diagonal: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return a matrix whose product with any symmetric one is that of A diag(r) A + left right'.

        A diag(r) A is symmetric: its blocks below the diagonal count twice instead of being computed twice.
        """
        scaled = inverse * by_diagonal
        slope = left @ right.T
        for rows in tiles(self.n_rows, _SLOPE_BLOCK):
            if rows.start:
                slope[rows, : rows.start] += 2.0 * (scaled[rows] @ inverse[:, : rows.start])
            slope[rows, rows] += scaled[rows] @ inverse[:, rows]
        return slope


def start_mixture(grams: np.ndarray) -> Mixture:
    """Return the mixture at which a search starts: equal weights in units of the kernels' mean diagonals."""
    return Mixture(
        weights=1.0 / (len(grams) * _sizes(grams)),
        constant=1.0,
        ridge=_START_RIDGE,
        temperature=_START_TEMPERATURE,
    )


def _sizes(grams: np.ndarray) -> np.ndarray:
    sizes = np.array([float(np.mean(gram.diagonal())) for gram in grams])
    sizes[sizes <= 0] = 1.0
    return sizes


def fit_mixture(
    grams: np.ndarray, index: np.ndarray, n_classes: int, ridge_scale: np.ndarray, weights: np.ndarray
) -> Mixture:
    """Return the kernel weights (summing to one), constant, ridge and temperature of least leave-one-out log loss.

    Kernels count in units of their mean diagonal. See :class:`LeaveOneOutLoss` for the parameters.
    """
    sizes = _sizes(grams)
    if np.any(sizes != 1.0):
        grams = grams / sizes[:, None, None]
    loss = LeaveOneOutLoss(grams, index, n_classes, ridge_scale, weights)
    n_kernels = len(grams)
    start = np.log([*np.full(n_kernels, 1.0 / n_kernels), _START_RIDGE, _START_TEMPERATURE])
    bounds = [_LOG_WEIGHTS] * n_kernels + [_LOG_RIDGES, tuple(np.log(_TEMPERATURES))]
    with single_threaded_blas():
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _N_STEPS})
        theta, (ridge, temperature) = np.exp(found.x[:-2]), np.exp(found.x[-2:])
        theta = _without_small_weights(loss, theta, ridge, temperature)
    total = float(theta.sum())
    return Mixture(
        weights=theta / total / sizes,
        constant=1.0 / total,
        ridge=float(ridge),
        temperature=float(temperature),
    )


def _without_small_weights(loss: LeaveOneOutLoss, theta: np.ndarray, ridge: float, temperature: float) -> np.ndarray:
    """Return the weights without those below .005 of their sum, or all of them if the small ones matter.

    Beside a small ridge they can: the kernel of a small weight may be the only one that tells two rows apart.
    """
    kept = np.where(theta < _SMALLEST_SHARE * theta.sum(), 0.0, theta)
    if np.all(kept):
        return theta
    with_all, with_kept = (loss.log_loss(loss.scores(weights, ridge)[0], temperature) for weights in (theta, kept))
    return theta if with_kept > _DROPPED_LOSS * with_all else kept
