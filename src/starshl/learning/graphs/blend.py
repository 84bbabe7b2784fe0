r"""Experts blended by what left-out given labels say of each.

.. math:: p = \mathrm{softmax}\Big(\kappa \sum_e b_e T_e F_e\Big)

with the scores F of each expert, a temperature T for each, and weights b of least log loss on labels that every expert
has left out, drawn toward weights that follow from how much neighbors agree. So nothing is chosen, and with the first
label the blend is nearly what the graph says.

Labels are often given to equally many rows of each class, although classes are unequal. So each left-out label counts
by the share of its class among all rows, as a first blend without this sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import logsumexp, softmax

from ..solvers.calibration import USUAL_CURVATURE, Calibration
from .clusters import weight_inside
from .experts import Expert, Labels
from .neighbor_graph import NeighborGraph

# Chosen on five draws of ten data sets, and checked on five others and on four further sets: docs/few_labels.md.
_PRIOR_LABELS = 20.0  # labels that the prior of the weights counts as
_AGREEMENTS = (0.4, 0.9)  # of neighbors, at which the graph's experts would get nothing and everything
_LEAST_SHARE = 0.1  # that either side gets nevertheless
_GRAPH_PARTS, _LABEL_PARTS = (0.3, 0.7), (0.5, 0.5)
_FEWEST_TELLING, _CAUTION = 5, 0.7  # labels below which probabilities are drawn toward uniform, and how far
_LOG_TEMPERATURES = (-2.0, 7.0)
_TEMPERATURE_PRIOR = 3.0  # that log T counts as, squared
_MOST_WEIGHT = 3.0  # of a left-out label, and the least is a third


@dataclass(frozen=True, slots=True)
class Blend:
    """Probabilities of all rows and of left-out labels.

    Parameters
    ----------
    logits : array of shape (n_rows, n_classes), whose softmax are the probabilities
    on_graph : array of shape (n_rows, n_classes), probabilities by the graph alone
    left_out : array of shape (n_labeled, n_classes), probabilities of labeled rows without their own label
    weights : array of shape (n_experts,), the weight of each expert, summing to one
    agreement : how much more often than by chance neighbors share a spread label, at most 1
    """

    logits: np.ndarray
    on_graph: np.ndarray
    left_out: np.ndarray
    weights: np.ndarray
    agreement: float

    @property
    def graph_share(self) -> float:
        """The weight of the experts that follow the graph."""
        return float(self.weights[: len(_GRAPH_PARTS)].sum())

    @property
    def probabilities(self) -> np.ndarray:
        return np.asarray(softmax(self.logits, axis=1))


def blend(
    experts: list[Expert], graph: NeighborGraph, labels: Labels, out: np.ndarray, shares: np.ndarray | None = None
) -> Blend:
    """Return the blend of experts, of which the first two follow the graph.

    Parameters
    ----------
    out : which labels, by position, all experts have left out
    shares : array of shape (n_classes,), the shares of the classes among all rows, if they are known
    """
    spread = experts[0].scores.argmax(axis=1)
    spread[labels.rows] = labels.index
    agreement = edge_agreement(graph, spread)
    prior = _prior(agreement, len(experts))
    experts = [_bent(each) for each in experts[: len(_GRAPH_PARTS)]] + experts[len(_GRAPH_PARTS) :]
    telling = out[labels.telling[out]]
    caution = _CAUTION if len(telling) < _FEWEST_TELLING else 1.0
    told = _Told(telling, labels.index[telling], np.ones(len(telling)))
    if shares is None:
        temperatures, weights = _fitted(experts, told, prior)
        shares = softmax(_logits(experts, caution * weights * temperatures), axis=1).mean(axis=0)
    told = told.counted_by(shares)
    temperatures, weights = _fitted(experts, told, prior)
    factors = caution * weights * temperatures
    left_out = softmax(sum(f * each.left_out for f, each in zip(factors, experts, strict=True)), axis=1)
    on_graph = softmax(temperatures[0] * experts[0].scores, axis=1)
    return Blend(_logits(experts, factors), on_graph, left_out, weights / (weights.sum() or 1.0), agreement)


def _bent(expert: Expert) -> Expert:
    """Return the expert with bent scores: squared loss pulls those of sure rows to one, however sure they are."""
    bent = Calibration(1.0, USUAL_CURVATURE, np.zeros(expert.scores.shape[1])).bend
    return Expert(bent(expert.scores), bent(expert.left_out), expert.usual_temperature)


def _logits(experts: list[Expert], factors: np.ndarray) -> np.ndarray:
    return np.asarray(sum(factor * each.scores for factor, each in zip(factors, experts, strict=True)))


@dataclass(frozen=True, slots=True)
class _Told:
    """Labels that tell something when they are left out.

    Parameters
    ----------
    positions : among all labels
    index : their classes
    counts : how much each one counts, 1 on average
    """

    positions: np.ndarray
    index: np.ndarray
    counts: np.ndarray

    def counted_by(self, shares: np.ndarray) -> _Told:
        """Return the labels, each counted by the share of its class among all rows over that among the labels."""
        if not len(self.index):
            return self
        among = np.bincount(self.index, minlength=len(shares)) / len(self.index)
        counts = np.clip(shares[self.index] / among[self.index], 1 / _MOST_WEIGHT, _MOST_WEIGHT)
        return _Told(self.positions, self.index, counts / counts.mean())


def _fitted(experts: list[Expert], told: _Told, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the temperature and the weight of each expert."""
    temperatures = np.array([_temperature(each, told) for each in experts])
    readings = np.stack([t * each.left_out[told.positions] for t, each in zip(temperatures, experts, strict=True)])
    return temperatures, _weights(readings, told, prior)


def edge_agreement(graph: NeighborGraph, index: np.ndarray) -> float:
    r"""Return how much more often than by chance neighbors are in one class, 1 at most.

    .. math:: q' = (q - \sum_g v_g^2) / (1 - \sum_g v_g^2)

    with q the share of edge weight inside the classes and v the classes' shares of the degrees.
    """
    total = float(graph.degrees.sum())
    if total == 0:
        return 0.0
    by_chance = float(np.sum((np.bincount(index, graph.degrees) / total) ** 2))
    return (weight_inside(graph, index) - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def _prior(agreement: float, n_experts: int) -> np.ndarray:
    """Return the weights before any label has been left out."""
    low, high = _AGREEMENTS
    on_graph = float(np.clip((agreement - low) / (high - low), _LEAST_SHARE, 1 - _LEAST_SHARE))
    n_alone = n_experts - len(_GRAPH_PARTS)
    alone = np.array(_LABEL_PARTS if n_alone == len(_LABEL_PARTS) else np.full(n_alone, 1.0 / n_alone))
    return np.concatenate([on_graph * np.array(_GRAPH_PARTS), (1 - on_graph) * alone])


def _temperature(expert: Expert, told: _Told) -> float:
    """Return the T of least log loss on left-out labels, drawn toward the usual one."""
    if not len(told.index):
        return expert.usual_temperature
    usual, left_out = np.log(expert.usual_temperature), expert.left_out[told.positions]

    def loss(log_temperature: float) -> float:
        values = np.exp(log_temperature) * left_out
        own = values[np.arange(len(values)), told.index]
        drawn = _TEMPERATURE_PRIOR * (log_temperature - usual) ** 2
        return float(told.counts @ (logsumexp(values, axis=1) - own)) + drawn

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))


def _weights(readings: np.ndarray, told: _Told, prior: np.ndarray) -> np.ndarray:
    """Return weights of least log loss, none negative, drawn toward the prior.

    Parameters
    ----------
    readings : array of shape (n_experts, n_left_out, n_classes)
    """
    if not len(told.index):
        return prior
    own = readings[:, np.arange(len(told.index)), told.index]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logits = np.tensordot(weights, readings, 1)
        totals = logsumexp(logits, axis=1)
        errors = np.exp(logits - totals[:, None]) * told.counts[:, None]
        slopes = np.einsum("ng,eng->e", errors, readings) - own @ told.counts
        drawn = weights - prior
        value = float(told.counts @ (totals - weights @ own)) + 0.5 * _PRIOR_LABELS * float(drawn @ drawn)
        return value, slopes + _PRIOR_LABELS * drawn

    bounds = [(0.0, None)] * len(prior)
    return np.asarray(minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x)


def temperature_of_confidence(scores: np.ndarray, expected: float) -> float:
    """Return the T at which the largest probability of softmax(T scores) is the expected one on average.

    The scores of a fit to spread labels cannot tell their own temperature: they repeat the mistakes of these labels.
    """

    def excess(log_temperature: float) -> float:
        return float(softmax(np.exp(log_temperature) * scores, axis=1).max(axis=1).mean()) - expected

    low, high = _LOG_TEMPERATURES
    if excess(low) >= 0 or excess(high) <= 0:
        return float(np.exp(low if excess(low) >= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-4)))
