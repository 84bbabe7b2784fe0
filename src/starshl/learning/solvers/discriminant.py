"""Discriminant analysis of class scores: which combinations of them tell the classes apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from ..._common.threads import tiles

# These constants were chosen by looking at eight data sets, which docs/defaults.md names.
_SHRINKAGES = (0.8, 0.6, 0.3, 0.1, 0.03)
_FEWEST_PER_CLASS = 10.0  # rows: of fewer, each makes its own class look worse by being left out
_N_FOLDS = 5
# Standard errors of log loss by which less shrinkage must be better: leave-one-out scores lean on each other's labels
# and flatter it.
_LEAST_GAIN = 1.5
_MOST_COMPARED = 2000  # rows on which shrinkages are compared
_SMALLEST_VARIANCE = 1e-6  # of scores, so that classes whose rows are all equal do no harm
_TILE = 4096  # rows that are summed up at a time, in float64
_LOG_TEMPERATURES = (-1.0, 6.0)
_TEMPERATURE_PRECISION = 0.05  # of its logarithm


@dataclass(frozen=True, slots=True)
class Discriminant:
    """The map from scores h to z = h @ matrix + shift, in the units of the scores.

    Parameters
    ----------
    shrinkage : how far means and covariance are those of classes that look the same
    matrix : array of shape (n_classes, n_classes)
    shift : array of shape (n_classes,)
    crossed : array of shape (n_rows, n_classes), z of the rows it was learned from, each by the map of other rows
    """

    shrinkage: float
    matrix: np.ndarray
    shift: np.ndarray
    crossed: np.ndarray


def fit_discriminant(scores: np.ndarray, index: np.ndarray, weights: np.ndarray) -> Discriminant | None:
    """Return the discriminant of the scores, or None if they are as good without one.

    Parameters
    ----------
    scores : array of shape (n_rows, n_classes), of rows that did not take part in their own scores
    index : array of shape (n_rows,), their classes
    weights : array of shape (n_rows,)
    """
    n_classes = scores.shape[1]
    n_effective = float(weights.sum() ** 2 / np.sum(weights**2))  # rows of unequal weight count as fewer (Kish)
    if n_classes < 3 or n_effective < _FEWEST_PER_CLASS * n_classes:
        return None
    fold = _folds(scores, index)
    folds = [ScoreSums.of(scores[fold == k], index[fold == k], weights[fold == k]) for k in range(_N_FOLDS)]
    total = ScoreSums.of(scores, index, weights)
    some = np.linspace(0, len(scores) - 1, min(len(scores), _MOST_COMPARED)).astype(np.int64)
    shares = weights[some] / weights[some].sum()
    best, least = None, _losses(scores[some], index[some], shares)
    for shrinkage in _SHRINKAGES:
        if not _speaks_for_itself(total.discriminant(shrinkage)[0]):
            break
        losses = _losses(_crossed(scores[some], fold[some], total, folds, shrinkage), index[some], shares)
        gain = float(shares @ (least - losses))
        error = float(np.sqrt(np.sum(shares**2 * (least - losses - gain) ** 2)))
        if gain > _LEAST_GAIN * error:
            best, least = shrinkage, losses
    if best is None:
        return None
    matrix, shift = total.discriminant(best)
    return Discriminant(best, matrix, shift, _crossed(scores, fold, total, folds, best))


def _speaks_for_itself(matrix: np.ndarray) -> bool:
    """Tell whether a larger score of any class raises its own discriminant more than those of others.

    Otherwise the analysis has only learned that a row takes away from its own class by being left out.
    """
    own = matrix.diagonal()
    return bool(np.all(own > (matrix.sum(axis=1) - own) / (len(matrix) - 1)))


def _folds(scores: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return a fold for every row: those of a class are dealt out in turn, from low to high, whatever their order."""
    fold = np.empty(len(index), dtype=np.int64)
    fold[np.lexsort((scores[np.arange(len(index)), index], index))] = np.arange(len(index)) % _N_FOLDS
    return fold


def _crossed(
    scores: np.ndarray, fold: np.ndarray, total: ScoreSums, folds: list[ScoreSums], shrinkage: float
) -> np.ndarray:
    crossed = np.empty_like(scores)
    for number, part in enumerate(folds):
        matrix, shift = total.without(part).discriminant(shrinkage)
        crossed[fold == number] = scores[fold == number] @ matrix + shift
    return crossed


def _losses(scores: np.ndarray, index: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the log loss of each row at the temperature of least mean loss."""
    own = scores[np.arange(len(scores)), index]

    def losses(log_temperature: float) -> np.ndarray:
        temperature = np.exp(log_temperature)
        return np.asarray(logsumexp(temperature * scores, axis=1) - temperature * own)

    found = minimize_scalar(
        lambda log_temperature: float(shares @ losses(log_temperature)),
        bounds=_LOG_TEMPERATURES,
        method="bounded",
        options={"xatol": _TEMPERATURE_PRECISION},
    )
    return losses(found.x)


@dataclass(frozen=True)
class ScoreSums:
    """Sums over weighted rows: of ones and scores by class, and of the products of scores."""

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, index: np.ndarray, weights: np.ndarray) -> ScoreSums:
        sums, squares = np.zeros((2, scores.shape[1], scores.shape[1]))
        for rows in tiles(len(scores), _TILE):
            piece = scores[rows].astype(np.float64)
            weighted = weights[rows, None] * piece
            np.add.at(sums, index[rows], weighted)
            squares += weighted.T @ piece
        return cls(np.bincount(index, weights, minlength=len(sums)), sums, squares)

    def without(self, part: ScoreSums) -> ScoreSums:
        return ScoreSums(self.counts - part.counts, self.sums - part.sums, self.squares - part.squares)

    @cached_property
    def _alike(self) -> tuple[float, float]:
        """The mean score of a row's own class, and of another class."""
        own = float(self.sums.trace())
        other = (float(self.sums.sum()) - own) / (len(self.sums) - 1)
        return own / float(self.counts.sum()), other / float(self.counts.sum())

    def discriminant(self, shrinkage: float) -> tuple[np.ndarray, np.ndarray]:
        """Return matrix and shift of z, in units in which a row has 1 for its own class and 0 for others on average."""
        n_classes, (own, other) = len(self.sums), self._alike
        alike = np.full_like(self.sums, other)
        np.fill_diagonal(alike, own)
        counts = self.counts[:, None]
        means = np.divide(self.sums, counts, out=alike.copy(), where=counts > 0)
        within = (self.squares - means.T @ (counts * means)) / float(self.counts.sum())
        variance = max(float(within.trace()) / n_classes, _SMALLEST_VARIANCE)
        within *= 1 - shrinkage
        within.flat[:: n_classes + 1] += shrinkage * variance
        means += shrinkage * (alike - means)
        matrix = np.linalg.solve(within, means.T)
        shift = -0.5 * np.einsum("gh,hg->g", means, matrix)
        reached = means @ matrix + shift
        lowest = (float(reached.sum()) - float(reached.trace())) / (n_classes * (n_classes - 1))
        unit = float(reached.trace()) / n_classes - lowest or 1.0
        return matrix / unit, (shift - lowest) / unit
