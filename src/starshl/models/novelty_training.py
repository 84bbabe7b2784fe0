"""From a finished fit to a rule of novelty: which measure finds classes that were left out, and what it usually is.

Every class of the training rows is left out once. Its rows then play rows of no known class, all others, each left out
alone, play rows of known ones, and the measure that tells them apart best is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._threads import single_threaded_blas
from ..solvers.cholesky import RidgeFactor
from ..solvers.leave_one_out import leave_one_out_scores, one_hot
from .expansion import Expansion
from .novelty import NoveltyRule, distances_to_support, nearest_distances, unexplained, with_further_rows
from .ridge_training import stratified_rows
from .samples import Samples

__all__ = ["NoveltyTraining", "learn_novelty"]

_CALIBRATION_ROWS = 1000  # the share of rejected rows then varies by .007 where it should be .05
_NEIGHBOR_COUNTS = (1, 3, 10, 30)  # equal ratios from the nearest row to a small neighborhood
_WEIGHTS = (0.5, 0.25, 0.75, 0.0, 1.0)  # of the distance; the first is taken if there is nothing to compare
# Share of pairs by which a weight must be better than the first. Left-out classes of training rows are only examples of
# others, so both kinds of evidence are used unless one of them is clearly worse.
_TOLERANCE = 0.005
_SCALE_QUANTILE = 0.9  # minus the median, it is the unit of a measure
_MAX_SCORE_ROWS = 2000  # of a regression of classes that only serves novelty
_SEED = 0  # of samples of rows, which need not differ from fit to fit
_RIDGE_ROWS = 500  # on which it chooses its ridge
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)  # shares of the kernel diagonal that it chooses from


@dataclass(frozen=True, slots=True)
class NoveltyTraining:
    """Rows of a fit, and a regression of their classes.

    Parameters
    ----------
    samples : all training samples
    rows : array of shape (n_rows,), where the rows stand among them
    index : array of shape (n_rows,), their classes
    scores : array of shape (n_rows, n_classes), class scores of the rows, each without itself
    expansion : the class scores as functions over support rows
    support_index : array of shape (n_support,), the classes of the support rows
    ridge, constant : ridge of the regression, and the constant that is added to the kernel
    """

    samples: Samples
    rows: np.ndarray
    index: np.ndarray
    scores: np.ndarray
    expansion: Expansion
    support_index: np.ndarray
    ridge: float
    constant: float

    def rule(self, seed: int) -> NoveltyRule:
        """Return the measure that finds left-out classes best, calibrated on training rows."""
        chosen, counts = stratified_rows(self.index, _CALIBRATION_ROWS, seed), self._possible_counts()
        if not counts:  # no row has another one to be compared with
            return NoveltyRule(_WEIGHTS[0], 1, np.array([[0.0, 1.0], [0.0, 1.0]]), np.empty(0))
        with single_threaded_blas():
            distances = self._distances_to_others(chosen)
            weight, count = self._best_measure(chosen, distances, counts)
        known = unexplained(self.scores[chosen]), nearest_distances(distances, (count,))[:, 0]
        rule = NoveltyRule(weight, count, np.array([_unit_of(values) for values in known]), np.empty(0))
        return NoveltyRule(weight, count, rule.units, np.sort(rule.measure(*known)))

    def _distances_to_others(self, chosen: np.ndarray) -> np.ndarray:
        """Return the distances of rows to all support rows but themselves."""
        distances = distances_to_support(self._queries(chosen), self.expansion)[1]
        distances[self.rows[chosen][:, None] == self.expansion.support] = np.inf
        return distances

    def _queries(self, rows: np.ndarray) -> Samples:
        return self.expansion.samples_of(self.samples.queries(self.rows[rows]).values)

    def _possible_counts(self) -> tuple[int, ...]:
        """Return the numbers of neighbors that each row has also without its class."""
        largest_class = int(np.bincount(self.support_index).max()) if self._has_classes else 1
        n_others = len(self.support_index) - largest_class
        return tuple(count for count in _NEIGHBOR_COUNTS if count <= n_others)

    @property
    def _has_classes(self) -> bool:
        return len(np.unique(self.support_index)) > 1

    def _best_measure(self, chosen: np.ndarray, distances: np.ndarray, counts: tuple[int, ...]) -> tuple[float, int]:
        """Return weight and number of neighbors of the measure by which left-out classes stand out most."""
        if not self._has_classes:
            return _WEIGHTS[0], counts[0]
        same_class = self.index[chosen][:, None] == self.support_index
        u_known, u_novel = self._trial_measures(chosen)
        d_known = nearest_distances(distances, counts)
        d_novel = nearest_distances(np.where(same_class, np.inf, distances), counts)

        def separation(weight: float, place: int) -> float:
            units = np.array([_unit_of(u_known), _unit_of(d_known[:, place])])
            rule = NoveltyRule(weight, counts[place], units, np.empty(0))
            known, novel = rule.measure(u_known, d_known[:, place]), rule.measure(u_novel, d_novel[:, place])
            return _area_under_curve(known, novel)

        areas = np.array([[separation(weight, place) for place in range(len(counts))] for weight in _WEIGHTS])
        best = int(np.argmax(areas.max(axis=1) >= areas.max() - _TOLERANCE))  # the first of the nearly best
        return _WEIGHTS[best], counts[int(areas[best].argmax())]

    def _trial_measures(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what a regression on these rows leaves unexplained of each without itself, and without its class."""
        few = replace(self.expansion, support=self.rows[rows], kept=self.samples.keep(self.rows[rows]))
        gram = distances_to_support(self._queries(rows), few)[0]
        inverse = np.linalg.inv(gram + self.constant + self.ridge * np.eye(len(rows)))
        targets = one_hot(self.index[rows], self.scores.shape[1])
        dual = inverse @ targets
        known = leave_one_out_scores(targets, dual, inverse.diagonal())
        novel = np.empty(len(rows))
        for places, others in _class_and_others(self.index[rows], self.scores.shape[1]):
            without = targets[places] - np.linalg.solve(inverse[np.ix_(places, places)], dual[places])
            novel[places] = unexplained(without[:, others])
        return unexplained(known), novel


def _class_and_others(index: np.ndarray, n_classes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each class that has any, with which columns belong to the others."""
    for own in np.unique(index).tolist():
        yield np.flatnonzero(index == own), np.arange(n_classes) != own


def _unit_of(values: np.ndarray) -> tuple[float, float]:
    """Return the median and a scale that is not zero."""
    center, high = np.quantile(values, (0.5, _SCALE_QUANTILE))
    scale = float(high - center) or float(values.max() - center) or 1.0
    return float(center), scale


def _area_under_curve(known: np.ndarray, novel: np.ndarray) -> float:
    """Return the share of pairs in which the novel row has the larger value; equal ones count half."""
    known = np.sort(known)
    below = np.searchsorted(known, novel), np.searchsorted(known, novel, side="right")
    return float(np.mean(below[0] + below[1])) / (2 * len(known))


def learn_novelty(
    functions: Expansion, samples: Samples, rows: np.ndarray, index: np.ndarray, n_classes: int
) -> dict[str, Any]:
    """Return what a hasher without class scores learns about novelty, by the names of learned attributes.

    Support rows of a hinge loss lie between classes. Others are kept beside them, to be compared with, and the classes
    of these are regressed under the mean kernel of the functions.

    Parameters
    ----------
    functions : those of the hasher
    samples : all training samples
    rows : array, which of them the fit used
    index : array of shape (n_samples,), their classes
    n_classes : int
    """
    basis = rows[stratified_rows(index[rows], _MAX_SCORE_ROWS, _SEED)]
    further = np.setdiff1d(basis, functions.support)
    kept = samples.keep(further)
    everything = with_further_rows(functions, further, kept)
    regression = _regress_classes(everything, samples, basis, index, n_classes)
    calibrated = rows[stratified_rows(index[rows], _CALIBRATION_ROWS, _SEED)]
    training = regression.training(samples, calibrated, index)
    return {
        "novelty_rows_": further,
        "novelty_samples_": kept,
        "novelty_coef_": regression.expansion.coefficients,
        "novelty_intercept_": regression.expansion.intercept,
        **training.rule(_SEED).learned(),
    }


@dataclass(frozen=True, slots=True)
class _Regression:
    """Class scores over rows to be compared with, and those of its own rows, each without itself."""

    expansion: Expansion
    basis: np.ndarray
    basis_scores: np.ndarray
    ridge: float
    constant: float

    def training(self, samples: Samples, rows: np.ndarray, index: np.ndarray) -> NoveltyTraining:
        """Return what a rule is learned from, calibrated on some rows."""
        scores = self.expansion.scores(self.expansion.samples_of(samples.queries(rows).values)).astype(np.float64)
        _, of_rows, of_basis = np.intersect1d(rows, self.basis, return_indices=True)
        scores[of_rows] = self.basis_scores[of_basis]
        support_index = index[self.expansion.support]
        return NoveltyTraining(
            samples, rows, index[rows], scores, self.expansion, support_index, self.ridge, self.constant
        )


def _regress_classes(
    functions: Expansion, samples: Samples, basis: np.ndarray, index: np.ndarray, n_classes: int
) -> _Regression:
    """Return the kernel ridge regression of the classes of some rows, by the mean kernel of functions."""
    few = replace(functions, support=basis, kept=samples.keep(basis))
    with single_threaded_blas():
        gram = distances_to_support(functions.samples_of(samples.queries(basis).values), few)[0]
        size = float(np.mean(gram.diagonal())) or 1.0
        targets = one_hot(index[basis], n_classes)
        trial = stratified_rows(index[basis], _RIDGE_ROWS, _SEED)
        ridge = size * _best_ridge(gram[np.ix_(trial, trial)] / size, targets[trial])
        factor = RidgeFactor(gram + size, ridge)
        dual = factor.solve(targets)
        scores = leave_one_out_scores(targets, dual, factor.inverse_diagonal())
    coefficients = np.zeros((n_classes, len(functions.support)))
    order = np.argsort(functions.support)
    coefficients[:, order[np.searchsorted(functions.support, basis, sorter=order)]] = dual.T
    expansion = replace(
        functions, weights=functions.mean_weights, coefficients=coefficients, intercept=size * dual.sum(axis=0)
    )
    return _Regression(expansion, basis, scores, ridge, size)


def _best_ridge(gram: np.ndarray, targets: np.ndarray) -> float:
    """Return the ridge of least squared error of rows that are each scored without themselves."""

    def error(ridge: float) -> float:
        inverse = np.linalg.inv(gram + 1.0 + ridge * np.eye(len(gram)))
        return float(np.sum(np.square(inverse @ targets / inverse.diagonal()[:, None])))

    return min(_RIDGES, key=error)
