"""Which items are worth a label: those that are unsure, unlike what has a label, and unlike each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..graphs import cluster_graph
from ..graphs.diffusion import diffusion_columns
from .beliefs import Beliefs
from .events import Label
from .items import LessonItems

__all__ = ["Choice", "Proposal", "choose"]

_N_FIRST_CLUSTERS = 20
_CACHE = "lesson_first"


class Proposal(NamedTuple):
    """An item worth a label.

    ``way`` says how it was found: "typical" of a region without labels, "unsure", or "random".
    """

    id: int
    predicted: Label | None
    confidence: float
    way: str


class Choice(NamedTuple):
    """Where a proposed item stands among all, and how it was found."""

    place: int
    way: str


def choose(items: LessonItems, given: np.ndarray, beliefs: Beliefs, barred: np.ndarray, n: int) -> list[Choice]:
    """Return up to n items to ask for next, the most useful one first."""
    free = (given < 0) & ~barred
    if not (given >= 0).any():
        return [Choice(place, "typical") for place in _medoids(items) if free[place]][:n]
    unsure = np.sort(beliefs.probabilities, axis=1)
    margin = unsure[:, -1] - (unsure[:, -2] if unsure.shape[1] > 1 else 0.0)
    score = np.where(free, 1.0 - margin, -np.inf)
    chosen: list[Choice] = []
    for _ in range(min(n, int(free.sum()))):
        place = int(score.argmax())
        chosen.append(Choice(place, "unsure"))
        column = diffusion_columns(items.graph, np.array([place]))[0]
        score = np.where(score > -np.inf, score * (1.0 - np.clip(column / column[place], 0.0, 1.0)), score)
        score[place] = -np.inf
    return chosen


def _medoids(items: LessonItems) -> list[int]:
    """Return the item of the highest degree in each cluster of the graph, those of the largest clusters first."""
    graph = items.graph
    if _CACHE not in graph.cache:
        clusters = cluster_graph(graph, min(_N_FIRST_CLUSTERS, graph.n_rows), np.random.RandomState(0))
        order = np.lexsort((-graph.degrees, clusters))
        _, first = np.unique(clusters[order], return_index=True)
        graph.cache[_CACHE] = order[first].tolist()
    medoids: list[int] = graph.cache[_CACHE]
    return medoids + [int(place) for place in np.argsort(-graph.degrees, kind="stable") if place not in set(medoids)]
