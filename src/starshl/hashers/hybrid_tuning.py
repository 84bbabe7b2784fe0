"""How much another class costs in hybrid codes, chosen on the training rows, and the vectors that codes stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._common.labels import Labels
from .._common.validation import Rows
from ..codes.binary import BinaryCodes
from ..index.hybrid import ClassRule, FloatRule, HammingRule
from ..index.residual import Reconstruction, are_orthonormal, class_fields
from ..learning.linalg import gram, project, smallest_columns, squared_distances
from .base import BaseHasher
from .supervision import TrainingRows

# The nearest ten are looked for among the first hundred where there are thousands of items, among fewer otherwise.
_SHORTLIST, _SHORTLIST_SHARE = 100, 1 / 30
# Chosen on samples of AG News and of MNIST, 3,000 rows, 32 and 64 bits: unseen queries lose little more.
_LOST_RECALL, _LOST_PRECISION = 0.001, 0.003
_N_NEIGHBORS = 10  # precision and recall at 10
_MAX_QUERIES, _MAX_ITEMS = 500, 5000
# In bits, and in standard deviations of distances; the larger they are, the coarser, because they then differ less.
_HAMMING_WEIGHTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
_RESIDUAL_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)


def training_rows_of(class_hasher: BaseHasher, rows: Rows, labels: Labels) -> TrainingRows:
    """Return the rows of a fit with their labels and the predictions of the fitted class hasher."""
    guess = class_positions(class_hasher, class_hasher.predict_training(rows))
    return TrainingRows(rows, labels.positions_in(class_hasher.classes_), guess)


def class_positions(class_hasher: BaseHasher, predicted: np.ndarray) -> np.ndarray:
    """Return the positions of predicted classes among those of the class hasher."""
    labels, inverse = np.unique(predicted, return_inverse=True)
    position = {label: index for index, label in enumerate(class_hasher.classes_.tolist())}
    return np.array([position[label] for label in labels.tolist()], np.int64)[inverse]


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


def deviation_of_distances(
    training: TrainingRows, codes: BinaryCodes, reconstruction: Reconstruction, seed: int
) -> float:
    """Return the standard deviation of the distances between rows and reconstructed rows."""
    queries, items = _sample(training, seed)
    deviation = float(_to_vectors(training, codes, reconstruction, queries, items).std())
    return deviation if deviation > 0 else 1.0


def choose_weight(searches: TuningSearches, rule_of: Callable[[float], ClassRule], weights: list[float]) -> float:
    """Return the weight that serves the searches best.

    If some items of the class come first anyway, precision is taken care of: take the largest weight whose recall is
    within .001 of the best. Otherwise take the smallest weight whose precision is within .003 of the best.
    """
    rules = [rule_of(weight) for weight in weights]
    thresholds = searches.thresholds(rules[0].class_first)
    if rules[0].class_first or searches.relevant is None:
        recalls = np.array([searches.recall(rule, thresholds) for rule in rules])
        return weights[np.flatnonzero(recalls >= recalls.max() - _LOST_RECALL)[-1]]
    precisions = np.array([searches.precision(rule, thresholds) for rule in rules])
    return weights[np.flatnonzero(precisions >= precisions.max() - _LOST_PRECISION)[0]]


@dataclass(frozen=True, slots=True, eq=False)
class TuningSearches:
    """Training rows as queries, each among other rows and without itself.

    Parameters
    ----------
    distances : array of shape (n_queries, n_items)
        Without regard to classes; infinite where an item is the query itself.
    differs : array of the same shape
        Whether the class that is predicted for the query without itself is another one than that of the item.
    nearest : array of shape (n_queries, at most 10)
        The items whose vectors are nearest.
    relevant : array of shape (n_queries, n_items), or None
        Whether item and query have the same label.
    """

    distances: np.ndarray
    differs: np.ndarray
    nearest: np.ndarray
    relevant: np.ndarray | None

    def thresholds(self, class_first: int) -> np.ndarray:
        """Return the distance of the last of the first items of each query's class, (n_queries, 1); -1 if none is."""
        of_class = np.where(self.differs, np.inf, self.distances)
        n_finite = np.isfinite(of_class).sum(axis=1)
        last = np.minimum(class_first, n_finite) - 1
        n_sorted = min(max(class_first, 1), of_class.shape[1])
        nearest = np.sort(np.partition(of_class, n_sorted - 1, axis=1)[:, :n_sorted], axis=1)
        return np.where(last >= 0, nearest[np.arange(len(last)), last], -1.0)[:, None]

    def first(self, rule: ClassRule, thresholds: np.ndarray, n: int) -> np.ndarray:
        """Return the first n items of each query in any order."""
        finite = np.isfinite(self.distances)
        known = np.where(finite, self.distances, 0.0)
        pushed = np.where(self.differs, rule.pushed(known, thresholds), known)
        # Numbers of bits are often equal: this orders them by position, and changes no other order.
        keys = np.where(finite, pushed + np.arange(known.shape[1]) * 1e-9, np.inf)
        return np.argpartition(keys, n - 1, axis=1)[:, :n]

    def recall(self, rule: ClassRule, thresholds: np.ndarray) -> float:
        """Return the share of the nearest vectors among the first items."""
        n_items = self.distances.shape[1] - 1
        n = min(n_items, max(self.nearest.shape[1], min(_SHORTLIST, int(n_items * _SHORTLIST_SHARE))))
        found = np.zeros(self.distances.shape, np.bool_)
        np.put_along_axis(found, self.first(rule, thresholds, n), True, axis=1)
        return float(np.take_along_axis(found, self.nearest, axis=1).mean())

    def precision(self, rule: ClassRule, thresholds: np.ndarray) -> float:
        """Return the share of the first ten items with the label of the query."""
        assert self.relevant is not None
        first = self.first(rule, thresholds, min(_N_NEIGHBORS, self.distances.shape[1] - 1))
        return float(np.take_along_axis(self.relevant, first, axis=1).mean())


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


def _to_vectors(
    training: TrainingRows, codes: BinaryCodes, reconstruction: Reconstruction, queries: np.ndarray, items: np.ndarray
) -> np.ndarray:
    rows = np.asarray(training.rows[queries], np.float64)
    return squared_distances(rows, reconstruction.vectors(codes[items])) / reconstruction.unit


def _vector_distances(rows: Rows, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return squared_distances(rows[queries].astype(np.float64), rows[items].astype(np.float64))
    norms = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    products = (rows[queries] @ rows[items].T).toarray()
    return norms[queries][:, None] + norms[items] - 2.0 * products


def fit_reconstruction(rows: np.ndarray, codes: BinaryCodes, components: np.ndarray, n_fields: int) -> Reconstruction:
    r"""Return the centers and scales of least squared error, in squared distances of unit one.

    .. math:: \min_{\mu, s} \sum_n |x_n - \mu_{c_n} - W^\top (s \circ b_n)|^2

    Because the rows of W are orthonormal, each scale is a regression coefficient within classes, of the projections
    on the bit. A field that no row has gets the mean of all centers.

    Parameters
    ----------
    rows : array of shape (n, n_features)
    codes : their codes as items; the bits after the class field are b
    components : W, array of shape (n_neighbor_bits, n_features)
    n_fields : how many numbers a class field may hold
    """
    n_class_bits = codes.n_bits - len(components)
    fields, signs = class_fields(codes, n_class_bits), codes.to_signs()[:, n_class_bits:].astype(np.float64)
    sizes = np.bincount(fields, minlength=n_fields)
    projected = project(rows, components).astype(np.float64)
    centered = signs - _means(signs, fields, sizes)[fields]
    squares = np.einsum("nj,nj->j", centered, centered)
    shared = np.einsum("nj,nj->j", centered, projected)
    scales = np.divide(np.maximum(shared, 0.0), squares, out=np.zeros(len(components)), where=squares > 0)
    centers = _means(rows, fields, sizes) - (_means(signs, fields, sizes) * scales) @ components
    centers[sizes == 0] = centers[sizes > 0].mean(axis=0)
    return Reconstruction(centers, components, scales, 1.0)


def _means(rows: np.ndarray, fields: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    members = np.zeros((len(fields), len(sizes)))
    members[np.arange(len(fields)), fields] = 1.0
    return gram(members, rows.astype(np.float64)) / np.maximum(sizes, 1)[:, None]


def components_of(neighbor_hasher: BaseHasher | None, n_features: int) -> np.ndarray:
    """Return the directions of a fitted hasher of neighbors, (n_bits, n_features), if these are orthonormal."""
    if neighbor_hasher is None:
        return np.empty((0, n_features))
    components = neighbor_hasher.hyperplanes
    if components is None or not are_orthonormal(components):
        raise ValueError(
            f"form is 'residual', and the neighbor_hasher is a {type(neighbor_hasher).__name__}, whose bits are not "
            "those of orthonormal directions. Use ITQ, or form='hamming'."
        )
    return components
