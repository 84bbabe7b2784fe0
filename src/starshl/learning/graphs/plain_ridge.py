r"""Ridge regression with a plain kernel on labeled and pseudo-labeled rows: what it says of a row without that row.

.. math:: A = (M + D)^{-1}, \qquad h = H - (A H) / \mathrm{diag}(A)

with the kernel M, targets H = one-hot - 1 / n_classes, and D = .1 on labeled rows and a larger ridge on pseudo-labeled
ones: the larger, the less they are trusted, and at infinity this is ridge regression on the labeled rows alone. Where
rows are too many for one matrix, a sample of them judges all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ..._common.files import array_digest
from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from ..kernels.banks import compute_grams
from ..kernels.kernel import Kernel
from ..kernels.vectors import ScaledGaussian
from ..linalg import inverse_of_kernel
from .neighbor_graph import NeighborGraph

LABEL_RIDGE = 0.1  # of a given label; a spread one gets 1 where the graph is trusted, and more where it is not
_FACTOR = 0.5  # bandwidth in median distances; what it gives with this ridge is in docs/defaults.md, "Few labels"
_FLOAT64_UP_TO = 4096  # rows; above, float32 halves memory and time and changes scores by less than 1e-3
_MOST_UPDATED = 0.25  # share of labeled rows up to which updating a cached inverse is cheaper than a new one
# Tests replace it, so that few labels are treated as many.
MOST_LABELED = 3000  # rows of a ridge regression on labeled rows alone
LARGEST_EXACT = 10_000  # rows, above which a sample judges all others; the inverse takes 0.4 GB and half a minute
_SAMPLE = 5_000  # rows: half of that, for an eighth of the time
# Ridge up to which the graph then decides alone: a sample of pseudo-labels knows less than all of them.
_GRAPH_ALONE = 2.3
_TILE_ROWS = 2048  # 41 or 82 MB of kernel values per thread
_CACHE = "plain_inverse"
_KERNEL_CACHE = "plain_kernel"


class PlainKernel(ABC):
    """A kernel between the rows of a sample that knows nothing of their graph."""

    n_rows: int

    @abstractmethod
    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        """Return the kernel between some rows (None: all) and some others, shape (n_rows, n_columns)."""

    @abstractmethod
    def gram(self) -> np.ndarray:
        """Return the kernel between all rows."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What tells this kernel from those of other rows."""


class RowsKernel(PlainKernel):
    """The Gaussian kernel of rows, of half their median distance."""

    def __init__(self, rows: Rows):
        self.n_rows = rows.shape[0]
        self.rows = rows

    @cached_property
    def kernel(self) -> Kernel:
        return ScaledGaussian(_FACTOR).fit(self.rows)

    @cached_property
    def _compared(self) -> Rows:
        return self.rows if self.n_rows <= _FLOAT64_UP_TO else self.rows.astype(np.float32, copy=False)

    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        return self.kernel(self._compared if rows is None else self._compared[rows], self._compared[columns])

    def gram(self) -> np.ndarray:
        return compute_grams([self.kernel], self._compared)[0]

    @cached_property
    def key(self) -> str:
        if isinstance(self.rows, np.ndarray):
            return array_digest({"rows": self.rows})
        return array_digest({name: getattr(self.rows, name) for name in ("data", "indices", "indptr")})


class GivenKernel(PlainKernel):
    """A kernel matrix that was given."""

    def __init__(self, kernel: np.ndarray):
        self.n_rows = len(kernel)
        self.kernel = kernel

    def block(self, rows: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        return self.kernel[:, columns] if rows is None else self.kernel[np.ix_(rows, columns)]

    def gram(self) -> np.ndarray:
        return self.kernel.astype(np.float64 if self.n_rows <= _FLOAT64_UP_TO else np.float32)

    @property
    def key(self) -> str:
        return array_digest({"kernel": self.kernel})


def share_kernel(plain: PlainKernel, graph: NeighborGraph) -> None:
    """Let rows share one fitted kernel over all calls with their graph: its median distance takes most of a second."""
    if not isinstance(plain, RowsKernel):
        return
    cached_key, kernel = graph.cache.get(_KERNEL_CACHE, (None, None))
    if cached_key == plain.key:
        plain.kernel = kernel
    else:
        graph.cache[_KERNEL_CACHE] = plain.key, plain.kernel


def scores_from_labeled(plain: PlainKernel, labeled: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the scores of all rows from ridge regression on the labeled rows alone, shape (n_rows, n_classes).

    Of many labeled rows, a fixed number at equal steps take part.
    """
    some = _some_labeled(labeled)
    with single_threaded_blas():
        coefficients = cho_solve(cho_factor(_ridged(plain, labeled[some]), lower=True), targets[some])
        return plain.block(None, labeled[some]).astype(np.float64) @ coefficients


def labeled_scores_without_own(
    plain: PlainKernel, labeled: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions among the labeled rows, and the scores of these rows from all other labeled rows alone."""
    some = _some_labeled(labeled)
    with single_threaded_blas():
        inverse = inverse_of_kernel(_ridged(plain, labeled[some]))
        return some, targets[some] - (inverse @ targets[some]) / inverse.diagonal()[:, None]


def _some_labeled(labeled: np.ndarray) -> np.ndarray:
    return np.linspace(0, len(labeled) - 1, min(len(labeled), MOST_LABELED)).astype(np.int64)


def _ridged(plain: PlainKernel, labeled: np.ndarray) -> np.ndarray:
    gram = plain.block(labeled, labeled).astype(np.float64)
    gram[np.diag_indices_from(gram)] += LABEL_RIDGE
    return gram


def leave_one_out(
    plain: PlainKernel, graph: NeighborGraph, labeled: np.ndarray, targets: np.ndarray, pseudo_ridge: float
) -> np.ndarray:
    """Return the scores that each row gets from a fit without it, shape (n_rows, n_classes).

    The inverse for no labels, (M + pseudo_ridge I)^-1, is cached on the graph. Labels change few entries of D and so
    enter by Woodbury's formula: with B the columns of the cached inverse A0 at the labeled rows and
    C = I / (pseudo_ridge - .1) - B_l, A = A0 + B C^-1 B'.
    """
    with single_threaded_blas():
        if pseudo_ridge <= LABEL_RIDGE or len(labeled) > _MOST_UPDATED * plain.n_rows:
            ridge = np.full(plain.n_rows, pseudo_ridge)
            ridge[labeled] = LABEL_RIDGE
            inverse = inverse_with_ridge(plain.gram(), ridge)
            dual, diagonal = inverse @ targets.astype(inverse.dtype), inverse.diagonal()
            return targets - dual / diagonal[:, None]
        inverse = _cached_inverse(plain, graph, pseudo_ridge)
        columns = inverse[:, labeled].astype(np.float64)
        core = -columns[labeled]
        core[np.diag_indices_from(core)] += 1.0 / (pseudo_ridge - LABEL_RIDGE)
        lower = np.linalg.cholesky(core)
        roots = solve_triangular(lower, columns.T, lower=True)
        dual = inverse @ targets.astype(inverse.dtype) + roots.T @ (roots @ targets)
        diagonal = inverse.diagonal() + np.einsum("ij,ij->j", roots, roots)
        return targets - dual / diagonal[:, None]


def _cached_inverse(plain: PlainKernel, graph: NeighborGraph, pseudo_ridge: float) -> np.ndarray:
    """Return (M + pseudo_ridge I)^-1, of which the graph caches the latest."""
    key = plain.key, pseudo_ridge
    cached_key, inverse = graph.cache.get(_CACHE, (None, None))
    if inverse is None or cached_key != key:
        graph.cache.pop(_CACHE, None)  # two of them may not fit into memory
        inverse = inverse_with_ridge(plain.gram(), np.full(plain.n_rows, pseudo_ridge))
        graph.cache[_CACHE] = key, inverse
    return inverse


def inverse_with_ridge(gram: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Return (gram + diag(ridge))^-1, which overwrites the matrix."""
    matrix = np.ascontiguousarray(gram)
    matrix[np.diag_indices_from(matrix)] += ridge.astype(matrix.dtype)
    return inverse_of_kernel(matrix)


def sampled_scores(
    plain: PlainKernel, labeled: np.ndarray, targets: np.ndarray, ridge: float, on_graph: np.ndarray
) -> np.ndarray:
    """Return the graph's scores where it is trusted, else those of a ridge regression on a sample of the rows.

    The sample holds all labeled rows, up to its size. Its own rows are scored without themselves.
    """
    if ridge <= _GRAPH_ALONE:
        return on_graph
    rng = np.random.RandomState(0)
    some = labeled if len(labeled) <= _SAMPLE else np.sort(rng.choice(labeled, _SAMPLE, replace=False))
    others = np.setdiff1d(np.arange(plain.n_rows), labeled)
    n_others = min(len(others), _SAMPLE - len(some))
    sample = np.sort(np.concatenate([some, rng.choice(others, n_others, replace=False)]))
    diagonal = np.where(np.isin(sample, labeled), LABEL_RIDGE, ridge)
    with single_threaded_blas():
        inverse = inverse_with_ridge(plain.block(sample, sample), diagonal)
        dual = inverse @ targets[sample].astype(inverse.dtype)
        scores = np.empty_like(targets)

        def fill(tile: slice) -> None:
            scores[tile] = plain.block(np.arange(tile.start, tile.stop), sample) @ dual

        run_all([partial(fill, tile) for tile in tiles(plain.n_rows, _TILE_ROWS)])
        scores[sample] = targets[sample] - dual / inverse.diagonal()[:, None]
    return scores


def what_judges(n_rows: int, ridge: float) -> str:
    """Return what a note adds about who judges the rows: nothing if all others do."""
    if n_rows <= LARGEST_EXACT:
        return ""
    judge = "the graph alone decides" if ridge <= _GRAPH_ALONE else f"a sample of {_SAMPLE:,} rows judges the others"
    return f"; with more than {LARGEST_EXACT:,} rows {judge}"
