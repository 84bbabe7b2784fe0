r"""Which items are worth a label: those that are unsure, and whose label would tell much about others.

With the covariance C of the graph's diffusion kernel given what is labeled, an item i tells

.. math:: \|C_i\|^2 / (\lambda + C_{ii})

about all items together: by so much the sum of their variances falls with its label (V-optimality; Ji and Han 2012).
It is large far from what is labeled, where items are many, and small for outliers. Multiplied by how unsure the item
is, it is the choice of Miller and Bertozzi (2024). Every item of a batch counts as labeled for the next one, so that a
batch holds no copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._threads import single_threaded_blas
from ..graphs import NeighborGraph
from ..graphs.smooth_basis import smooth_basis
from .beliefs import Beliefs
from .events import Label

__all__ = ["N_VECTORS", "Choice", "Proposal", "choose", "draw"]

#: Smooth functions over the graph, of which choices know its covariance. More would tell smaller groups apart, and
#: every proposal would take longer.
N_VECTORS = 128
_RIDGE = 0.1  # of the mean variance, as that of the labels


class Proposal(NamedTuple):
    """An item worth a label.

    ``way`` says how it was found: "typical" of many items, as long as there are not two classes to be unsure about,
    "unsure", or "random".
    """

    id: int
    predicted: Label | None
    confidence: float
    way: str


class Choice(NamedTuple):
    """Where a proposed item stands among all, and how it was found."""

    place: int
    way: str


def choose(graph: NeighborGraph, given: np.ndarray, beliefs: Beliefs, barred: np.ndarray, n: int) -> list[Choice]:
    """Return up to n items to ask for next, the most useful one first."""
    free = (given < 0) & ~barred
    unsure, way = _unsureness(beliefs)
    chosen: list[Choice] = []
    # Once for all steps: each change of the number of threads takes longer than a step.
    with single_threaded_blas():
        told = _Told(graph, np.flatnonzero(given >= 0))
        for _ in range(min(n, int(free.sum()))):
            place = int(np.where(free, told.gains() * unsure, -1.0).argmax())
            free[place] = False
            chosen.append(Choice(place, way))
            told.add(place)
    return chosen


def draw(given: np.ndarray, barred: np.ndarray, taken: Sequence[int], n: int) -> list[Choice]:
    """Return up to n items at random, none of the taken ones; the same ones until labels change."""
    free = (given < 0) & ~barred
    free[list(taken)] = False
    order = np.random.RandomState(int((given >= 0).sum())).permutation(len(given))
    return [Choice(int(place), "random") for place in order[free[order]][:n]]


def _unsureness(beliefs: Beliefs) -> tuple[np.ndarray, str]:
    """Return how little the first class of each item is ahead of the second, and what that makes a choice."""
    probabilities = beliefs.probabilities
    if probabilities.shape[1] < 2:
        return np.ones(len(probabilities), dtype=np.float32), "typical"
    best_two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return (1.0 - (best_two[:, 1] - best_two[:, 0])).astype(np.float32), "unsure"


class _Told:
    """What labels of some items tell about all: the covariance that they leave, as ``smooth @ basis'``.

    To be used with BLAS on a single thread.
    """

    def __init__(self, graph: NeighborGraph, labeled: np.ndarray) -> None:
        variances, vectors = smooth_basis(graph, N_VECTORS)
        self.variances = variances.astype(np.float32)
        self.basis = vectors * np.sqrt(self.variances)
        self.ridge = np.float32(_RIDGE * float(np.einsum("ij,ij->", self.basis, self.basis)) / len(self.basis))
        own = self.basis[labeled].astype(np.float64)
        inner = np.linalg.inv(np.eye(own.shape[1]) + own.T @ own / float(self.ridge)).astype(np.float32)
        self.smooth = self.basis @ inner

    def gains(self) -> np.ndarray:
        """Return by how much the label of each item would lower the variance of all together."""
        left = np.einsum("ij,ij->i", self.smooth, self.basis)
        return np.einsum("ij,ij,j->i", self.smooth, self.smooth, self.variances) / (self.ridge + np.maximum(left, 0.0))

    def add(self, place: int) -> None:
        """Count an item as labeled, by a step of rank one."""
        own = self.smooth[place].copy()
        self.smooth -= np.outer(self.smooth @ self.basis[place], own / (self.ridge + own @ self.basis[place]))
