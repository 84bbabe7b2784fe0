"""NeighborGraph: every row joined to its nearest neighbors, computed once and used by every fit on the same rows.

Neighbors are exact, and the same for any number of threads. They are looked for among principal components of the rows,
or by the distance of a kernel.
"""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator

from ..._common.bundle import read_bundle, write_bundle
from ..._common.threads import run_all, single_threaded_blas, tiles, using_threads
from ..._common.validation import Rows, SamplesLike, check_integer, check_n_jobs, check_rows
from ..._common.words import counted
from ...exceptions import BundleFormatError
from ..kernels.kernel import check_gram
from ..linalg import column_means, positive_peaks, principal_directions, project
from ._graph_loops import exact_distances, keep_nearer

_KIND = "NeighborGraph"
_LEAST_SIGMA = 0.1  # of the median: identical rows have sigma 0, and a much smaller floor makes islands of them
_LEAST_WEIGHT = 1e-12  # below, an edge is rounding: a far outlier has no neighbors
_LARGEST_COVARIANCE = 2048  # features; sparse rows with more of them take subspace iteration
_SPARE_DIRECTIONS = 14  # beyond those asked for, so that the last of them converge too
_N_ITERATIONS = 12  # of subspace iteration, each with a pass over the rows
# Fixed, because BLAS sums depend on the shape of their blocks.
_TILE_ROWS, _TILE_COLUMNS = 512, 512
_SPARE = 9  # candidates beyond the neighbors asked for, so that float32 rarely has to be doubted
_ROUNDINGS = 16  # of a float32 product of 50 entries, in units of its largest term; measured below 4


class NeighborGraph:
    r"""A weighted graph in which every row is joined to its nearest neighbors.

    .. math:: w_{ij} = \exp(-d_{ij}^2 / (\sigma_i \sigma_j)), \qquad W \leftarrow (W + W^T) / 2

    with :math:`\sigma_i` the distance of row i to the farthest of its neighbors (Zelnik-Manor and Perona 2004,
    "Self-tuning spectral clustering"). Make one with :meth:`of_rows` or :meth:`of_kernel`. It does not depend on
    labels: compute it once, save it, and pass it to every ``fit(graph=...)`` and :func:`~starshl.spread_labels` on the
    same rows in the same order. The graph keeps what they compute from it alone, for the next call.

    Attributes
    ----------
    weights : csr_array of shape (n_rows, n_rows), symmetric, without a diagonal
    degrees : array of shape (n_rows,)
        Sums of the weights; 0 for a row without neighbors, such as a far outlier.
    normalized : csr_array of shape (n_rows, n_rows)
        S = D^-1/2 W D^-1/2 with the degrees D.
    components : int array of shape (n_rows,)
        The connected component of each row, numbered from 0 in the order of their first rows.
    n_rows, n_neighbors, n_connected_components : int

    Examples
    --------
    >>> graph = NeighborGraph.of_rows([[0.0], [1.0], [2.0], [50.0], [51.0]], n_neighbors=1)
    >>> graph.n_connected_components, graph.components.tolist()
    (2, [0, 0, 0, 1, 1])
    """

    def __init__(self, weights: csr_array, n_neighbors: int):
        self.weights = csr_array(weights)
        self.n_neighbors = n_neighbors
        self.n_rows = int(self.weights.shape[0])
        self.cache: dict[str, Any] = {}
        """What was computed from the graph and does not depend on labels; not part of a saved file."""

    @classmethod
    def of_rows(cls, X: SamplesLike, n_neighbors: int = 7, n_components: int = 50, n_jobs: int | None = None) -> Self:
        """Return the graph of Euclidean neighbors among the leading principal components of the rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        n_neighbors : int, default=7
            Neighbors of a row, not counting itself.
        n_components : int, default=50
            Rows with more features are reduced to this many principal components first.
        n_jobs : int, default=None
            Number of threads; the graph does not depend on it.
        """
        n_neighbors = check_integer(n_neighbors, "n_neighbors", low=1)
        n_components = check_integer(n_components, "n_components", low=1)
        rows = read_rows(X)
        with using_threads(check_n_jobs(n_jobs)):
            coordinates = principal_coordinates(rows, n_components)
            return cls._of_neighbors(*nearest_neighbors(coordinates, min(n_neighbors, len(coordinates) - 1)))

    @classmethod
    def of_kernel(cls, kernel: ArrayLike, n_neighbors: int = 7, n_jobs: int | None = None) -> Self:
        """Return the graph of neighbors in the distance of a kernel, d^2 = K_ii + K_jj - 2 K_ij.

        Parameters
        ----------
        kernel : array of shape (n_rows, n_rows), or several of them
            Kernel values between all rows. Several kernels are each divided by their mean diagonal and then averaged.
        n_neighbors : int, default=7
        n_jobs : int, default=None
            Number of threads; the graph does not depend on it.
        """
        n_neighbors = check_integer(n_neighbors, "n_neighbors", low=1)
        mean = mean_kernel(kernel)
        with using_threads(check_n_jobs(n_jobs)):
            return cls._of_neighbors(*nearest_by_kernel(mean, min(n_neighbors, len(mean) - 1)))

    @classmethod
    def _of_neighbors(cls, distances: np.ndarray, neighbors: np.ndarray) -> Self:
        n_rows, n_neighbors = neighbors.shape
        sigma = np.sqrt(distances[:, -1])
        sigma = np.maximum(sigma, _LEAST_SIGMA * (np.median(sigma[sigma > 0]) if sigma.any() else 1.0))
        values = np.exp(-distances / (sigma[:, None] * sigma[neighbors]))
        values[values < _LEAST_WEIGHT] = 0.0
        ends = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
        one_way = csr_array((values.ravel(), neighbors.ravel(), ends), shape=(n_rows, n_rows))
        weights = csr_array((one_way + one_way.T) / 2)
        weights.eliminate_zeros()
        weights.sort_indices()
        return cls(weights, n_neighbors)

    @cached_property
    def degrees(self) -> np.ndarray:
        return np.asarray(self.weights.sum(axis=1)).ravel()

    @cached_property
    def normalized(self) -> csr_array:
        roots = np.sqrt(self.degrees)
        scale = np.divide(1.0, roots, out=np.zeros(self.n_rows), where=roots > 0)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.weights.indptr))
        values = self.weights.data * scale[rows] * scale[self.weights.indices]
        return csr_array((values, self.weights.indices, self.weights.indptr), shape=self.weights.shape)

    @cached_property
    def components(self) -> np.ndarray:
        return connected_components(self.weights, directed=False)[1].astype(np.int64)

    @property
    def n_connected_components(self) -> int:
        return int(self.components.max()) + 1

    def require_rows(self, n_rows: int) -> None:
        """Refuse rows that are not those of the graph."""
        if n_rows != self.n_rows:
            raise ValueError(
                f"The graph has {self.n_rows} rows, and X has {n_rows}. Pass the graph of exactly these rows, labeled "
                "and unlabeled, in the same order; or pass no graph, and it is computed."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file that holds numbers only, never code."""
        write_bundle(path, {"kind": _KIND, "n_neighbors": self.n_neighbors}, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a graph written by :meth:`save`."""
        header, arrays = read_bundle(path)
        if header.get("kind") != _KIND:
            raise BundleFormatError(
                "{file} holds no neighbor graph",
                advice="Open a hasher with starshl.load; save the graph again.",
                file=repr(os.fspath(path)),
            )
        n_neighbors = header.get("n_neighbors")
        graph = cls.of_arrays(arrays, n_neighbors) if type(n_neighbors) is int and n_neighbors > 0 else None
        if graph is None:
            raise BundleFormatError.damaged("its arrays are not the edges of a neighbor graph", path)
        return graph

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the edges as arrays to store."""
        return {
            "values": self.weights.data,
            "columns": self.weights.indices.astype(np.int64),
            "ends": self.weights.indptr.astype(np.int64),
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], n_neighbors: int) -> Self | None:
        """Return the graph of stored edges, None if they cannot be those of one."""
        weights = _checked_weights(arrays)
        return None if weights is None else cls(weights, n_neighbors)

    def __getstate__(self) -> dict[str, Any]:
        return {"weights": self.weights, "n_neighbors": self.n_neighbors, "n_rows": self.n_rows, "cache": {}}

    def __repr__(self) -> str:
        return (
            f"NeighborGraph({self.n_rows} rows, {counted(self.n_neighbors, 'neighbor')}, "
            f"{counted(self.n_connected_components, 'connected component')})"
        )


def check_graph(graph: object, n_rows: int) -> NeighborGraph:
    """Return the graph that a user gave for this many rows; refuse anything else."""
    if not isinstance(graph, NeighborGraph):
        raise TypeError(
            f"graph is a {type(graph).__name__}; it must be None or a NeighborGraph of the rows of X. Make one with "
            "NeighborGraph.of_rows(X)."
        )
    graph.require_rows(n_rows)
    return graph


def read_rows(X: SamplesLike) -> Rows:
    """Return rows of finite numbers, dense or sparse."""
    return check_rows(_Reader(), X, fitting=True, accept_sparse=True, any_scale=True)


class _Reader(BaseEstimator):
    """What the check of rows asks for: an object that remembers the features."""

    def __repr__(self) -> str:
        return _KIND


def mean_kernel(kernels: ArrayLike) -> np.ndarray:
    """Return the mean of square kernel matrices, each over its mean diagonal, in float64; refuse anything else."""
    stack = np.asarray(kernels)
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or stack.shape[0] < 1 or stack.shape[1] < 2:
        raise ValueError(
            f"The kernel has shape {np.asarray(kernels).shape}; it must be (n_rows, n_rows), or "
            "(n_kernels, n_rows, n_rows) for several kernels, with two rows or more. Compute it between all rows."
        )
    mean = np.zeros(stack.shape[1:])
    for position, gram in enumerate(stack):
        if not np.isfinite(gram).all():
            raise ValueError(f"Kernel {position} contains NaN or infinity; kernel values must be finite numbers.")
        check_gram(gram, f"Kernel {position}", np.random.RandomState(0))
        gram = gram.astype(np.float64, copy=False)
        mean += gram / ((np.trace(gram) / len(gram) or 1.0) * len(stack))
    return mean


def _checked_weights(arrays: dict[str, np.ndarray]) -> csr_array | None:
    """Return the weights of a file, or None: compiled products read wherever an index points."""
    if arrays.keys() != {"values", "columns", "ends"}:
        return None
    values, columns, ends = arrays["values"], arrays["columns"], arrays["ends"]
    n_rows = ends.size - 1
    if ends.dtype != np.int64 or ends.ndim != 1 or n_rows < 2 or ends[0] != 0 or ends[-1] != values.size:
        return None
    if np.any(np.diff(ends) < 0) or values.dtype != np.float64 or not np.isfinite(values).all() or np.any(values <= 0):
        return None
    if columns.dtype != np.int64 or columns.shape != values.shape or values.ndim != 1:
        return None
    if columns.size and (columns.min() < 0 or columns.max() >= n_rows):
        return None
    weights = csr_array((values, columns, ends), shape=(n_rows, n_rows))
    is_canonical = weights.has_canonical_format and not weights.diagonal().any()
    return weights if is_canonical and (weights != weights.T).nnz == 0 else None


def principal_coordinates(X: Rows, n_components: int) -> np.ndarray:
    """Return centered rows in float64, reduced to at most ``n_components`` principal directions, longest row 1.

    Rows with no more features than that are only centered. Sparse rows are never made dense. Weights of a neighbor
    graph do not depend on the unit, so the length 1 only keeps numbers in range.
    """
    largest = float(abs(X).max()) if X.shape[1] else 0.0
    if largest > 0 and not 1e-12 < largest < 1e12:  # squares of such entries could leave the range of their type
        X = X / X.dtype.type(largest)
    if X.shape[1] > n_components:
        directions = _directions(X, n_components)
        coordinates = project(X, directions, -(directions @ column_means(X))).astype(np.float64)
    else:
        coordinates = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
    coordinates = coordinates - coordinates.mean(axis=0)
    longest = float(np.sqrt(np.einsum("ij,ij->i", coordinates, coordinates).max(initial=0.0)))
    return np.ascontiguousarray(coordinates / (longest or 1.0))


def _directions(X: Rows, n_components: int) -> np.ndarray:
    if issparse(X) and X.shape[1] > _LARGEST_COVARIANCE:
        return _sparse_directions(X, n_components)
    directions = principal_directions(X, n_components)[0]
    # Equal rows differ in no direction; along any one, they stay at the same place.
    return directions if len(directions) else np.eye(1, X.shape[1])


def _sparse_directions(X: csr_array, n_components: int) -> np.ndarray:
    """Return the leading eigenvectors of the covariance of sparse rows as rows, by subspace iteration.

    The start is a fixed random subspace of the features, so that the order of the rows does not matter.
    """
    rows, means = X.astype(np.float64), column_means(X)
    n_tried = min(n_components + _SPARE_DIRECTIONS, *X.shape)
    basis = np.random.RandomState(0).standard_normal((X.shape[1], n_tried))
    with single_threaded_blas():
        for _ in range(_N_ITERATIONS):
            basis = np.linalg.qr(_times_scatter(rows, means, basis))[0]
        small = basis.T @ _times_scatter(rows, means, basis)
        _, vectors = np.linalg.eigh((small + small.T) / 2)
        return positive_peaks((basis @ vectors[:, ::-1][:, :n_components]).T)


def _times_scatter(rows: csr_array, means: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return (X - 1 m')' (X - 1 m') times the basis."""
    projected = rows @ basis - means @ basis
    return rows.T @ projected - np.outer(means, projected.sum(axis=0))


def nearest_neighbors(coordinates: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances and indices of the nearest other rows, nearest first, (n_rows, n_neighbors) each.

    Candidates come from float32 products and are ranked by float64 differences; a row whose last neighbor is not
    clearly nearer than all rows that are no candidates is done again in float64. Equal distances go to the lower index.
    The coordinates should be centered and of moderate size. O(n_rows^2 n_axes) time, O(n_rows) memory.
    """
    n_rows = len(coordinates)
    n_kept = min(n_neighbors + _SPARE, n_rows - 1)
    coarse = coordinates.astype(np.float32)
    norms = np.einsum("ij,ij->i", coarse, coarse)
    fine_norms = np.einsum("ij,ij->i", coordinates, coordinates)
    doubt = _ROUNDINGS * np.finfo(np.float32).eps * (fine_norms + fine_norms.max())

    def of(tile: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(tile.start, tile.stop)
        values, candidates = _candidates(coarse, norms, rows, n_kept)
        distances, neighbors = _ranked(coordinates, rows, candidates, n_neighbors)
        if n_kept < n_rows - 1:
            doubtful = distances[:, -1] > values[:, -1] + fine_norms[rows] - doubt[rows]
            if doubtful.any():
                _, candidates = _candidates(coordinates, fine_norms, rows[doubtful], n_kept)
                again = _ranked(coordinates, rows[doubtful], candidates, n_neighbors)
                distances[doubtful], neighbors[doubtful] = again
        return distances, neighbors

    with single_threaded_blas():
        return _stacked(run_all([partial(of, tile) for tile in tiles(n_rows, _TILE_ROWS)]))


def _candidates(
    coordinates: np.ndarray, norms: np.ndarray, rows: np.ndarray, n_kept: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``n_kept`` smallest |b|^2 - 2 a'b of each row a, and the rows b that they belong to."""
    own = coordinates[rows]
    values = np.full((len(rows), n_kept), np.inf, dtype=coordinates.dtype)
    columns = np.zeros((len(rows), n_kept), dtype=np.int64)
    for block in tiles(len(coordinates), _TILE_COLUMNS):
        keep_nearer(own @ coordinates[block].T, norms[block], block.start, rows, values, columns)
    return values, columns


def _ranked(
    coordinates: np.ndarray, rows: np.ndarray, candidates: np.ndarray, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    candidates = np.sort(candidates, axis=1)
    distances = np.empty(candidates.shape)
    exact_distances(coordinates, rows, candidates, distances)
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(candidates, order, axis=1)


def nearest_by_kernel(kernel: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what :func:`nearest_neighbors` does, for the distance of a kernel, d^2 = K_ii + K_jj - 2 K_ij."""
    diagonal = np.ascontiguousarray(np.diagonal(kernel))

    def of(tile: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(tile.start, tile.stop)
        values = np.full((len(rows), n_neighbors), np.inf)
        neighbors = np.zeros((len(rows), n_neighbors), dtype=np.int64)
        keep_nearer(np.ascontiguousarray(kernel[tile]), diagonal, 0, rows, values, neighbors)
        return np.maximum(values + diagonal[tile, None], 0.0), neighbors

    return _stacked(run_all([partial(of, tile) for tile in tiles(len(kernel), _TILE_ROWS)]))


def _stacked(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
