"""How unlike all training rows a row is, and predictions that may say "none of these".

A measure of novelty weighs what the classes leave unexplained of a row against its distance to the nearest rows. A fit
takes the one that finds classes best that were left out, and notes what it is on training rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils.validation import check_is_fitted

from ..._common.threads import run_all, single_threaded_blas, tiles, using_threads
from ..._common.validation import Rows, SamplesLike, check_share
from ...learning.kernels.mixture import KernelMixture
from ...learning.solvers.leave_one_out import leave_one_out_scores, one_hot
from ...learning.solvers.ridge import RidgeFactor
from .expansion import Expansion
from .ridge_training import stratified_rows
from .samples import Precomputed, Samples

if TYPE_CHECKING:
    from ..base import Capability

_TILE = 256  # rows that meet the support rows together
_TRIAL_ROWS = 1000  # on which measures are compared
_CALIBRATION_ROWS = 4000  # the share of rejected rows then varies by .0035 where it should be .05
_QUANTILES = 1000  # of the calibration that are kept
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


class Rejection:
    """What a hasher with classes needs to recognize rows that belong to none of them.

    Attributes
    ----------
    novelty_weight_, novelty_neighbors_, novelty_units_, novelty_calibration_ : see
        :class:`starshl.hashers.star.novelty.NoveltyRule`
    novelty_rows_, novelty_samples_, novelty_coef_, novelty_intercept_ : if the hasher has no class scores, further
        rows to be compared with, and class scores over the support rows and these
    """

    if TYPE_CHECKING:
        n_jobs: int | None
        classes_: np.ndarray
        novelty_rows_: np.ndarray
        novelty_samples_: Any
        novelty_coef_: np.ndarray
        novelty_intercept_: np.ndarray

        @property
        def expansion(self) -> Expansion: ...

        def _read(self, X: SamplesLike) -> Samples: ...

        def require(self, *capabilities: Capability, parameter: str | None = None) -> None: ...

    def _store_novelty(self, rule: NoveltyRule, further: ClassRegression | None = None) -> None:
        """Set what :meth:`novelty` needs; a hasher without class scores has learned some over further rows."""
        if further is not None:
            self.novelty_rows_, self.novelty_samples_ = further.rows, further.samples
            self.novelty_coef_, self.novelty_intercept_ = further.coefficients, further.intercept
        self.novelty_weight_, self.novelty_neighbors_ = rule.weight, rule.n_neighbors
        self.novelty_units_, self.novelty_calibration_ = rule.units, rule.calibration

    @abstractmethod
    def _predicted_index(self, X: SamplesLike) -> np.ndarray:
        """Return the number of the class of each sample."""

    @property
    def _class_expansion(self) -> Expansion:
        """Class scores over the support rows, with kernel weights that all of them share."""
        own = self.expansion
        if "novelty_rows_" not in vars(self):  # the functions of the hasher are class scores already
            return own
        everything = with_further_rows(own, self.novelty_rows_, self.novelty_samples_)
        coefficients, intercept = self.novelty_coef_, self.novelty_intercept_
        return replace(everything, weights=own.mean_weights, coefficients=coefficients, intercept=intercept)

    def predict(self, X: SamplesLike, reject: float | None = None) -> np.ndarray:
        """Return the class of each sample.

        Parameters
        ----------
        X : samples as for ``fit``
        reject : float, default=None
            Answer "none of these" where :meth:`novelty` is at least 1 - reject: of samples of known classes, about
            this share is rejected. The answer means "unlabeled" in y: -1 among integers, NaN among floats, the empty
            text among strings, None among objects. None rejects nothing.
        """
        reject = None if reject is None else check_share(reject, "reject")
        index = self._predicted_index(X)
        labels = self.classes_[index]
        return labels if reject is None else marked_labels(labels, self.novelty(X) >= 1.0 - reject)

    def novelty(self, X: SamplesLike) -> np.ndarray:
        """Return how unlike all training rows each sample is, from 0 to 1, shape (n,).

        It is the share of training rows that look more familiar, each of them compared with the others: a new sample
        of a known class is above .95 about once in twenty times, and one of another class more often than not. The
        measure weighs what class scores leave unexplained against the distance to the nearest training rows under the
        learned kernel. The weight and the number of neighbors are those that work best on training rows when one class
        after the other is left out.
        """
        check_is_fitted(self)
        self.require("novelty")
        with using_threads(self.n_jobs):
            return NoveltyRule.of(self).shares(self._read(X), self._class_expansion)


def marked_labels(labels: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """Return labels with the mark of unlabeled rows where they are rejected.

    Examples
    --------
    >>> marked_labels(np.array([3, 4]), np.array([False, True])).tolist()
    [3, -1]
    >>> marked_labels(np.array(["a", "b"]), np.array([False, True])).tolist()
    ['a', '']
    """
    marks: dict[str, Any] = {"i": -1, "f": np.nan, "U": "", "S": b""}
    if labels.dtype.kind == "u":
        labels = labels.astype(np.int64)
    elif labels.dtype.kind not in marks:
        labels = labels.astype(object)
    else:
        labels = labels.copy()
    labels[rejected] = marks.get(labels.dtype.kind)
    return labels


@dataclass(frozen=True, slots=True)
class NoveltyRule:
    r"""A measure of novelty and what it is on training rows that are each compared with the other ones.

    .. math:: (1 - w) \max\left(\frac{u(x) - u_0}{u_1}, 0\right) + w\, \frac{d_k(x) - d_0}{d_1}

    with u of :func:`unexplained`, and :math:`d_k` the distance to the k-th nearest support row, both in units of what
    they are on training rows. Where classes share features, their scores mix, and much of a usual training row is
    unexplained; of a row far from all there is less to explain, which does not make it familiar.

    Parameters
    ----------
    weight : w, from 0 to 1
    n_neighbors : k
    units : array of shape (2, 2): u_0, u_1 and d_0, d_1
    calibration : sorted array of shape (n,), the measure of training rows
    """

    weight: float
    n_neighbors: int
    units: np.ndarray
    calibration: np.ndarray

    @classmethod
    def of(cls, hasher: Any) -> NoveltyRule:
        """Return the rule that a fitted hasher learned."""
        return cls(
            hasher.novelty_weight_, hasher.novelty_neighbors_, hasher.novelty_units_, hasher.novelty_calibration_
        )

    def measure(self, unexplained: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the measure of rows; large is unlike all training rows."""
        (u_center, u_scale), (d_center, d_scale) = self.units
        surplus = np.maximum(unexplained - u_center, 0.0) / u_scale
        return (1 - self.weight) * surplus + self.weight * (distances - d_center) / d_scale

    def shares(self, samples: Samples, expansion: Expansion) -> np.ndarray:
        """Return for each sample the share of training rows that look more familiar, at least 0 and below 1.

        ``expansion`` gives class scores, with kernel weights that all of them share. With n training rows, p = 1 -
        share is a conformal p-value: a new row of a known class has p <= a with a probability of at most a.
        """
        shares = np.zeros(len(samples))
        if len(self.calibration) == 0:
            return shares

        def fill(rows: slice) -> None:
            values, distances = distances_to_support(samples.queries(np.arange(rows.start, rows.stop)), expansion)
            scores = values @ expansion.coefficients.T + expansion.intercept
            nearest = nearest_distances(distances, (self.n_neighbors,))[:, 0]
            measured = self.measure(unexplained(scores), nearest)
            shares[rows] = np.searchsorted(self.calibration, measured) / (len(self.calibration) + 1)

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(len(samples), _TILE)])
        return shares


def unexplained(scores: np.ndarray) -> np.ndarray:
    r"""Return :math:`|h - e|` for class scores h, where e has a one at the index of the largest and zeros elsewhere.

    Examples
    --------
    >>> unexplained(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [0.0, 0.707]
    """
    rest = np.array(scores, dtype=np.float64)
    rest[np.arange(len(rest)), rest.argmax(axis=1)] -= 1.0
    return np.sqrt(np.square(rest).sum(axis=1))


def distances_to_support(samples: Samples, expansion: Expansion) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the kernel mixture between samples and support rows, and the distances that it means.

    .. math:: |\phi(x) - \phi(z)|^2 = k(x, x) + k(z, z) - 2 k(x, z).

    Of precomputed kernels, k(x, x) is unknown. They are taken to be normalized, and -k stands for the distance, which
    then gives the same order.
    """
    weights = expansion.mean_weights
    if isinstance(samples, Precomputed):
        values = np.tensordot(weights, samples.values[:, :, expansion.support].astype(np.float64), 1)
        return values, -values
    values = KernelMixture(expansion.kernels, weights, expansion.support_samples)(samples.values).astype(np.float64)
    own = weights @ samples.diagonals(expansion.kernels)
    others = weights @ type(samples)(expansion.support_samples).diagonals(expansion.kernels)
    return values, np.sqrt(np.maximum(own[:, None] + others - 2.0 * values, 0.0))


def nearest_distances(distances: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """Return the k-th smallest distance of each row, for each k of ``counts``."""
    places = [count - 1 for count in counts]
    return np.partition(distances, places, axis=1)[:, places]


def with_further_rows(functions: Expansion, rows: np.ndarray, further: Rows) -> Expansion:
    """Return functions whose support rows are joined by others; coefficients are those of the first ones only."""
    support = np.concatenate([functions.support, rows])
    both = (functions.support_samples, further)
    joined = vstack(both, "csr") if issparse(further) else np.concatenate(both)
    return replace(functions, support=support, support_samples=joined)


def without_novelty(state: dict[str, Any]) -> dict[str, Any]:
    """Return learned attributes without those about novelty, for a hasher that loses its training rows."""
    return {name: value for name, value in state.items() if not name.startswith("novelty_")}


class ClassRegression(NamedTuple):
    """Class scores over the support rows and further ones, and the rule that uses them."""

    rows: np.ndarray
    samples: Rows
    coefficients: np.ndarray
    intercept: np.ndarray
    rule: NoveltyRule


def learn_novelty(
    functions: Expansion, samples: Samples, rows: np.ndarray, index: np.ndarray, n_classes: int
) -> ClassRegression:
    """Return what a hasher without class scores learns about novelty.

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
    further_samples = samples.support_samples(further)
    everything = with_further_rows(functions, further, further_samples)
    regression = _regress_classes(everything, samples, basis, index, n_classes)
    calibrated = rows[stratified_rows(index[rows], _CALIBRATION_ROWS, _SEED)]
    training = regression.training(samples, calibrated, index)
    learned = regression.expansion
    return ClassRegression(further, further_samples, learned.coefficients, learned.intercept, training.rule(_SEED))


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
    few = replace(functions, support=basis, support_samples=samples.support_samples(basis))
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
    gram : array of shape (n_rows, n_rows), the kernel between the rows, if they are the support rows and it is known
    """

    samples: Samples
    rows: np.ndarray
    index: np.ndarray
    scores: np.ndarray
    expansion: Expansion
    support_index: np.ndarray
    ridge: float
    constant: float
    gram: np.ndarray | None = None

    def rule(self, seed: int) -> NoveltyRule:
        """Return the measure that finds left-out classes best, calibrated on training rows."""
        chosen, counts = stratified_rows(self.index, _TRIAL_ROWS, seed), self._possible_counts()
        if not counts:  # no row has another one to be compared with
            return NoveltyRule(_WEIGHTS[0], 1, np.array([[0.0, 1.0], [0.0, 1.0]]), np.empty(0))
        with single_threaded_blas():
            distances = self._distances_to_others(chosen)
            weight, count = self._best_measure(chosen, distances, counts)
        known = unexplained(self.scores[chosen]), nearest_distances(distances, (count,))[:, 0]
        rule = NoveltyRule(weight, count, np.array([_unit_of(values) for values in known]), np.empty(0))
        return replace(rule, calibration=self._calibration(rule, seed))

    def _calibration(self, rule: NoveltyRule, seed: int) -> np.ndarray:
        """Return the measure of training rows, each compared with the others, in rising order."""
        chosen = stratified_rows(self.index, _CALIBRATION_ROWS, seed)
        measured = np.empty(len(chosen))

        def fill(tile: slice) -> None:
            rows = chosen[tile]
            nearest = nearest_distances(self._distances_to_others(rows), (rule.n_neighbors,))[:, 0]
            measured[tile] = rule.measure(unexplained(self.scores[rows]), nearest)

        with single_threaded_blas():
            run_all([partial(fill, tile) for tile in tiles(len(chosen), _TILE)])
        measured.sort()
        if len(measured) <= _QUANTILES:
            return measured
        return np.quantile(measured, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)

    def _distances_to_others(self, chosen: np.ndarray) -> np.ndarray:
        """Return the distances of rows to all support rows but themselves."""
        if self.gram is None:
            distances = distances_to_support(self._queries(chosen), self.expansion)[1]
        else:
            own = self.gram.diagonal()
            distances = np.sqrt(np.maximum(own[chosen][:, None] + own - 2.0 * self.gram[chosen], 0.0))
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
        few = replace(
            self.expansion, support=self.rows[rows], support_samples=self.samples.support_samples(self.rows[rows])
        )
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
