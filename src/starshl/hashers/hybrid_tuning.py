"""What a hybrid learns about distances: how far neighbors are, and the vectors that codes stand for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._common.labels import Labels
from .._common.validation import Rows
from ..index.residual import are_orthonormal
from ..learning.linalg import gram, project, smallest_columns, squared_distances
from .base import BaseHasher
from .supervision import TrainingRows

Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From positions of queries and of items to the distances between them."""
_N_NEIGHBORS = 10
_MAX_QUERIES, _MAX_ITEMS = 500, 20_000
# Of the distances of neighbors: beyond the first, an item is none; from the second to the first, it becomes one less.
_FAR, _USUAL = 0.9, 0.5


def training_rows_of(class_hasher: BaseHasher, rows: Rows, labels: Labels) -> TrainingRows:
    """Return the rows of a fit with their labels and their posteriors without themselves."""
    return TrainingRows(rows, labels.positions_in(class_hasher.classes_), class_hasher.training_proba(rows))


class Neighborhoods:
    """Some training rows as queries, each with the ten nearest rows of its own class.

    Parameters
    ----------
    rows : array or CSR array of shape (n, n_features)
    own : array of shape (n,)
        The class of each row.
    askable : array of shape (n,)
        Which rows may be queries.
    seed : int
    """

    def __init__(self, rows: Rows, own: np.ndarray, askable: np.ndarray, seed: int) -> None:
        self._rows = rows
        order = np.random.RandomState(seed).permutation(len(own))
        queries = order[askable[order]][:_MAX_QUERIES]
        others = order[~np.isin(order, queries)][: _MAX_ITEMS - len(queries)]
        items = np.sort(np.concatenate([queries, others]))
        groups = [(queries[own[queries] == each], items[own[items] == each]) for each in np.unique(own[queries])]
        # Where every class has a single row, the neighbors are of other classes.
        self._groups = [group for group in groups if len(group[1]) > 1] or [(queries, items)]

    def scale(self, distances: Distances, least: float = 0.0) -> tuple[float, float]:
        """Return a unit of differences between distances, and the distance beyond which an item is no neighbor.

        Parameters
        ----------
        distances : those that the unit is about, of the neighbors by vectors
        least : float
            The unit is at least this much.
        """
        return self._scale(distances, lambda queries, items: vector_distances(self._rows, queries, items), least)

    def vector_scales(self) -> np.ndarray:
        """Return unit and saturation for Euclidean distances, and for 1 minus the cosine, shape (2, 2)."""

        def euclidean(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
            return np.sqrt(vector_distances(self._rows, queries, items))

        def cosine(queries: np.ndarray, items: np.ndarray) -> np.ndarray:
            return cosine_distances(self._rows, queries, items)

        return np.array([self._scale(each, each, 0.0) for each in (euclidean, cosine)])

    def _scale(self, distances: Distances, by: Distances, least: float) -> tuple[float, float]:
        found = []
        for queries, items in self._groups:
            itself = queries[:, None] == items
            nearest = smallest_columns(np.where(itself, np.inf, by(queries, items)), min(_N_NEIGHBORS, len(items) - 1))
            found.append(np.take_along_axis(distances(queries, items), nearest, axis=1).ravel())
        values = np.concatenate(found)
        if not len(values):
            return 1.0, 0.0
        usual, far = np.quantile(values, [_USUAL, _FAR]).tolist()
        unit = max(far - usual, least)
        return unit if unit > 0 else (far if far > 0 else 1.0), far


def vector_distances(rows: Rows, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return squared Euclidean distances."""
    if isinstance(rows, np.ndarray):
        return squared_distances(rows[queries].astype(np.float64), rows[items].astype(np.float64))
    norms = _squared_norms(rows[queries])[:, None] + _squared_norms(rows[items])
    return np.maximum(norms - 2.0 * _products(rows, queries, items), 0.0)


def cosine_distances(rows: Rows, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return 1 minus the cosines; a row of zeros has cosine 0."""
    both = np.sqrt(_squared_norms(rows[queries]))[:, None] * np.sqrt(_squared_norms(rows[items]))
    return 1.0 - np.divide(_products(rows, queries, items), both, out=np.zeros_like(both), where=both > 0)


def _products(rows: Rows, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return project(rows[queries].astype(np.float64), rows[items].astype(np.float64))
    return np.asarray((rows[queries] @ rows[items].T).toarray(), np.float64)


def _squared_norms(rows: Rows) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
    return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()


def fit_reconstruction(
    rows: np.ndarray, own: np.ndarray, neighbor_signs: np.ndarray, components: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the class centers and the scales of the bits of least squared error.

    .. math:: \min_{\mu, s} \sum_n |x_n - \mu_{c_n} - W^\top (s \circ b_n)|^2

    Because the rows of W are orthonormal, each scale is a regression coefficient within classes, of the projections
    on the bit. A class that no row has gets the mean of all centers.

    Parameters
    ----------
    rows : array of shape (n, n_features)
    own : array of shape (n,), the class c of each row
    neighbor_signs : b, array of shape (n, n_neighbor_bits)
    components : W, array of shape (n_neighbor_bits, n_features)
    n_classes : int
    """
    signs, sizes = neighbor_signs.astype(np.float64), np.bincount(own, minlength=n_classes)
    projected = project(rows, components).astype(np.float64)
    centered = signs - _means(signs, own, sizes)[own]
    squares = np.einsum("nj,nj->j", centered, centered)
    shared = np.einsum("nj,nj->j", centered, projected)
    scales = np.divide(np.maximum(shared, 0.0), squares, out=np.zeros(len(components)), where=squares > 0)
    centers = _means(rows, own, sizes) - (_means(signs, own, sizes) * scales) @ components
    centers[sizes == 0] = centers[sizes > 0].mean(axis=0)
    return centers, scales


def _means(rows: np.ndarray, groups: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    members = np.zeros((len(groups), len(sizes)))
    members[np.arange(len(groups)), groups] = 1.0
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
