"""The searches by which a fit chooses the weight of another class."""

from __future__ import annotations

import numpy as np

from .._types import Rows
from ..codes import BinaryCodes
from ..index import Reconstruction
from ..index.class_rule import FloatRule, HammingRule
from ..linalg import smallest_columns, squared_distances
from .training import TrainingRows
from .weight import TuningSearches, choose_weight

__all__ = ["best_hamming_weight", "best_residual_weight", "spread_of_distances"]

_N_NEIGHBORS = 10  # precision and recall at 10
_MAX_QUERIES, _MAX_ITEMS = 500, 5000
# In bits, and in standard deviations of distances; the larger they are, the coarser, because they then differ less.
_HAMMING_WEIGHTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
_RESIDUAL_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)


def best_hamming_weight(training: TrainingRows, neighbor_codes: BinaryCodes, class_first: int, seed: int) -> int:
    """Return the weight in bits that serves searches by codes best."""
    queries, items = _sample(training, seed)
    distances = neighbor_codes[queries].distances(neighbor_codes[items]).astype(np.float64)
    weights = [weight for weight in _HAMMING_WEIGHTS if weight <= neighbor_codes.n_bits + 1]
    searches = _searches(training, queries, items, distances)
    return int(choose_weight(searches, lambda weight: HammingRule(1, weight, class_first), list(map(float, weights))))


def best_residual_weight(
    training: TrainingRows, codes: BinaryCodes, reconstruction: Reconstruction, class_first: int, seed: int
) -> float:
    """Return the weight in units of the reconstruction that serves searches by vectors best."""
    queries, items = _sample(training, seed)
    searches = _searches(training, queries, items, _to_vectors(training, codes, reconstruction, queries, items))
    return choose_weight(searches, lambda weight: FloatRule(1, weight, class_first), list(_RESIDUAL_WEIGHTS))


def spread_of_distances(training: TrainingRows, codes: BinaryCodes, reconstruction: Reconstruction, seed: int) -> float:
    """Return the standard deviation of the distances between rows and reconstructed rows."""
    queries, items = _sample(training, seed)
    spread = float(_to_vectors(training, codes, reconstruction, queries, items).std())
    return spread if spread > 0 else 1.0


def _to_vectors(
    training: TrainingRows, codes: BinaryCodes, reconstruction: Reconstruction, queries: np.ndarray, items: np.ndarray
) -> np.ndarray:
    rows = np.asarray(training.rows[queries], np.float64)
    return squared_distances(rows, reconstruction.vectors(codes[items])) / reconstruction.unit


def _sample(training: TrainingRows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some labeled rows as queries, or some of all rows if there are no labels, and items with them."""
    order = np.random.RandomState(seed).permutation(len(training.own))
    askable = order[training.label[order] >= 0] if (training.label >= 0).any() else order
    queries = askable[:_MAX_QUERIES]
    others = order[~np.isin(order, queries)][: _MAX_ITEMS - len(queries)]
    return queries, np.sort(np.concatenate([queries, others]))


def _searches(training: TrainingRows, queries: np.ndarray, items: np.ndarray, distances: np.ndarray) -> TuningSearches:
    itself = queries[:, None] == items
    between = np.where(itself, np.inf, _vector_distances(training.rows, queries, items))
    nearest = smallest_columns(between, min(_N_NEIGHBORS, len(items) - 1))
    relevant = None
    if (training.label >= 0).any():
        relevant = training.label[queries][:, None] == training.label[items]
    differs = training.guess[queries][:, None] != training.own[items]
    return TuningSearches(np.where(itself, np.inf, distances), differs, nearest, relevant)


def _vector_distances(rows: Rows, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return squared_distances(rows[queries].astype(np.float64), rows[items].astype(np.float64))
    norms = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    products = (rows[queries] @ rows[items].T).toarray()
    return norms[queries][:, None] + norms[items] - 2.0 * products
