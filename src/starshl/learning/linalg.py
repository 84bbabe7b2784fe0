"""Products, distances, principal directions and Cholesky factors whose bytes do not depend on the number of threads.

BLAS adds in another order when it has more threads. Here rows are cut into fixed tiles, BLAS runs single-threaded
inside a tile, and threads share out the tiles. Factors and their inverses are computed in place, by blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import eigh, get_blas_funcs, get_lapack_funcs
from scipy.sparse import csr_array, issparse

from .._common.threads import run_all, single_threaded_blas, tiles
from .._common.validation import Rows
from ..exceptions import InputError

BLOCK = 256  # rows of a block of a Cholesky factor
_TILE_ROWS = 1024  # fixed, so that sums are the same for any number of threads
# The covariance of sparse rows is a dense square of this size: 128 MiB.
_LARGEST_SPARSE_COVARIANCE = 4096
_COLUMNS_PER_PASS = 16  # that are sorted in the time of one search for the smallest


def fill_by_tiles(n_rows: int, n_columns: int, dtype: DTypeLike, compute: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Return the (n_rows, n_columns) array whose rows ``tile`` are ``compute(tile)``."""
    filled = np.empty((n_rows, n_columns), dtype=dtype)

    def fill(tile: slice) -> None:
        filled[tile] = compute(tile)

    with single_threaded_blas():
        run_all([partial(fill, tile) for tile in tiles(n_rows, _TILE_ROWS)])
    return filled


def project(X: Rows, components: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """Return ``X @ components.T + intercept``, shape (n_samples, n_components), in the dtype of X.

    X may be sparse. Center by the intercept, ``-(components @ mean)``, rather than by copying X.

    Examples
    --------
    >>> project(np.eye(2), np.array([[1.0, 2.0]]), np.array([-1.0])).tolist()
    [[0.0], [1.0]]
    """
    components = np.asarray(components, dtype=X.dtype)
    intercept = np.asarray(intercept, dtype=X.dtype)
    return fill_by_tiles(X.shape[0], len(components), X.dtype, lambda tile: X[tile] @ components.T + intercept)


def gram(A: np.ndarray, B: np.ndarray | None = None) -> np.ndarray:
    """Return ``A.T @ B`` (``A.T @ A`` without B) in float64, summed over row tiles in their order."""
    right = A if B is None else B

    def product(tile: slice) -> np.ndarray:
        return A[tile].T @ right[tile]

    return _sum_over_tiles(len(A), product)


def _sum_over_tiles(n_rows: int, product: Callable[[slice], np.ndarray]) -> np.ndarray:
    with single_threaded_blas():
        parts = run_all([partial(product, tile) for tile in tiles(n_rows, 8 * _TILE_ROWS)])
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    return total


def inverse_of_kernel(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a kernel matrix plus its ridge, in C order; the matrix is overwritten if it is, too."""
    matrix = np.ascontiguousarray(matrix)
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (matrix,))
    with single_threaded_blas():
        # The transpose is what Fortran takes for the matrix, so that nothing is copied.
        inverse, failed = potrf(matrix.T, lower=True, overwrite_a=True, clean=False)
        if not failed:
            inverse, failed = potri(inverse, lower=True, overwrite_c=True)
    if failed:
        raise np.linalg.LinAlgError(
            f"The kernel matrix of {len(matrix)} rows plus its ridge is not positive definite. Use a Mercer kernel."
        )
    # LAPACK wrote one triangle, the lower one of the transpose.
    full = inverse.T
    for row in range(1, len(full)):
        full[row, :row] = full[:row, row]
    return full


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    r"""Return all squared Euclidean distances, shape (len(A), len(B)).

    .. math:: \|a - b\|^2 = \|a\|^2 + \|b\|^2 - 2 a^T b

    with the mean of B as the origin, so that rows far from zero lose no digits. Where rows nearly agree,
    rounding may leave a small negative number; it is set to zero.
    """
    distances_of = _distances_to(np.asarray(B, dtype=A.dtype))
    return fill_by_tiles(len(A), len(B), A.dtype, lambda tile: distances_of(A[tile]))


def _distances_to(B: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    origin = B.mean(axis=0, dtype=np.float64).astype(B.dtype)
    B = B - origin
    norms = _squared_norms(B)

    def distances_of(rows: np.ndarray) -> np.ndarray:
        rows = rows - origin
        distances = rows @ B.T
        distances *= -2
        distances += _squared_norms(rows)[:, None]
        distances += norms
        return np.maximum(distances, 0, out=distances)

    return distances_of


def _squared_norms(A: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", A, A)


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Return the rows scaled to length one; a row of zeros stays.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


def nearest_rows(A: np.ndarray, B: np.ndarray, k: int, *, exclude_self: bool = False) -> np.ndarray:
    """Return the indices of the k rows of B nearest to each row of A, nearest first, shape (len(A), k).

    ``exclude_self`` leaves out row i of B for row i of A. Equal distances are ordered by index.

    Examples
    --------
    >>> A = np.array([[0.0], [2.0], [5.0]])
    >>> nearest_rows(A, A, 1, exclude_self=True).ravel().tolist()
    [1, 0, 1]
    """
    distances_of = _distances_to(np.asarray(B, dtype=A.dtype))

    def of(tile: slice) -> np.ndarray:
        distances = distances_of(A[tile])
        if exclude_self:
            distances[np.arange(len(distances)), np.arange(len(A))[tile]] = np.inf
        return smallest_columns(distances, k)

    return fill_by_tiles(len(A), k, np.int64, of)


def smallest_columns(values: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k smallest entries of each row, ascending; ties go to the lower column."""
    if k > values.shape[1] // _COLUMNS_PER_PASS:
        return values.argsort(axis=1, kind="stable")[:, :k]
    values = values.copy()
    rows = np.arange(len(values))
    columns = np.empty((len(values), k), dtype=np.int64)
    for place in range(k):
        columns[:, place] = values.argmin(axis=1)
        values[rows, columns[:, place]] = np.inf
    return columns


def column_means(X: Rows) -> np.ndarray:
    """Return the mean of each feature in float64; X may be sparse."""
    if issparse(X):
        return np.asarray(X.sum(axis=0, dtype=np.float64)) / X.shape[0]
    return X.mean(axis=0, dtype=np.float64)


def principal_directions(X: Rows, n_directions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvectors of the covariance as rows, and their variances.

    At most the rank of the centered rows, so perhaps fewer than asked for. The entry of largest magnitude of
    each direction is positive. O(n d min(n, d)) for n rows of d features; float64 whatever X is. Sparse rows are not
    made dense, but may have at most 4,096 features.

    Returns
    -------
    directions : array of shape (n_found, n_features), orthonormal rows
    variances : array of shape (n_found,), descending

    Examples
    --------
    >>> directions, variances = principal_directions(np.array([[0.0, 0.0], [4.0, 0.0]]), 2)
    >>> directions.tolist(), variances.tolist()
    ([[1.0, 0.0]], [4.0])
    """
    n_samples, n_features = X.shape
    means, centered = _exact_means(X), None
    if issparse(X):
        scatter = _sparse_covariance(X)
    elif n_features <= n_samples:
        scatter = _scatter(X, means) / n_samples
    else:
        centered = X - means
        scatter = gram(np.ascontiguousarray(centered.T)) / n_samples
    n_kept = min(n_directions, len(scatter))
    with single_threaded_blas():
        values, vectors = eigh(scatter, subset_by_index=(len(scatter) - n_kept, len(scatter) - 1))
        values, vectors = values[::-1], vectors[:, ::-1]
        # What lies below is rounding, not variance: of eigenvalues, relative to the largest, or of the entries of X.
        of_values = max(values[0], 0.0) * len(scatter) * np.finfo(np.float64).eps
        rounded = means[np.diag(scatter) > 0] if centered is None else means[centered.any(axis=0)]
        of_entries = (np.trace(scatter) + rounded @ rounded) * float(np.finfo(X.dtype).eps) ** 2
        above = values > max(of_values, of_entries)
        values, vectors = values[above], vectors[:, above]
        directions = vectors.T if centered is None else vectors.T @ centered
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return positive_peaks(directions), values


def _exact_means(X: Rows) -> np.ndarray:
    """Return the means of the columns; that of a constant one is its constant, so that nothing of it is left."""
    means = column_means(X)
    if not issparse(X):
        low = X.min(axis=0)
        means = np.where(low == X.max(axis=0), low, means)
    return means


def _scatter(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    def product(tile: slice) -> np.ndarray:
        rows = X[tile] - means  # float64, as the means are
        return rows.T @ rows

    return _sum_over_tiles(len(X), product)


def _sparse_covariance(X: csr_array) -> np.ndarray:
    n_samples, n_features = X.shape
    if n_features > _LARGEST_SPARSE_COVARIANCE:
        raise ValueError(
            f"X is sparse and has {n_features:,} features; sparse rows have principal directions here up to "
            f"{_LARGEST_SPARSE_COVARIANCE:,}. Reduce X first, for example with sklearn.decomposition.TruncatedSVD."
        )
    rows, means = X.astype(np.float64), column_means(X)
    return (rows.T @ rows).toarray() / n_samples - np.outer(means, means)


def required_directions(X: Rows, n_directions: int, name: str, *, at_most: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return ``n_directions`` principal directions, or say how many there are at most.

    ``name`` is the parameter that asked for them. More are returned, up to ``at_most``, if there are more.
    """
    directions, variances = principal_directions(X, max(n_directions, at_most))
    n_samples, n_features = X.shape
    if len(directions) == 0:
        raise ValueError(f"All {n_samples} rows are equal, so codes cannot tell them apart. Give rows that differ.")
    if len(directions) < n_directions:
        raise InputError(
            "{parameter} is {value}",
            "the {n_samples} rows of {n_features} feature(s) vary in {most} directions, so {parameter} can be at most "
            "{most} here",
            "Lower it, or use a method without this limit.",
            parameter=name,
            value=n_directions,
            n_samples=n_samples,
            n_features=n_features,
            most=len(directions),
        )
    return directions, variances


def positive_peaks(directions: np.ndarray) -> np.ndarray:
    """Return the rows with signs such that the entry of largest magnitude is positive."""
    peaks = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return np.where(peaks < 0, -directions, directions)


def random_rotation(n: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw an orthogonal n x n matrix uniformly (Haar measure)."""
    with single_threaded_blas():
        q, r = np.linalg.qr(rng.standard_normal((n, n)))
    # QR alone is not uniform: the signs of R's diagonal belong to the draw.
    return q * np.where(np.diag(r) >= 0, 1.0, -1.0)


def blocks_of(A: np.ndarray) -> list[slice]:
    """Return the blocks into which the rows, and the columns, of a square matrix are cut."""
    return tiles(len(A), BLOCK)


def factor_in_place(A: np.ndarray, n_jobs: int | None = None) -> bool:
    """Turn the lower triangle of A into its Cholesky factor; return whether A is positive definite.

    Column by column of blocks, each from all columns to its left. What lies above the blocks of the diagonal stays.
    """
    blocks = blocks_of(A)
    for number, columns in enumerate(blocks):
        done = A[columns, : columns.start]
        try:
            corner = np.linalg.cholesky(A[columns, columns] - done @ done.T)
        except np.linalg.LinAlgError:
            return False
        A[columns, columns] = corner
        run_all([partial(_fill_below, A, rows, columns) for rows in blocks[number + 1 :]], n_jobs)
    return True


def _fill_below(A: np.ndarray, rows: slice, columns: slice) -> None:
    done = slice(0, columns.start)
    block = A[rows, columns] - A[rows, done] @ A[columns, done].T
    # A product with the inverse of the corner would be faster, and lose digits where the ridge is small.
    A[rows, columns] = solve_lower(A[columns, columns], block.T).T


def solve_lower(L: np.ndarray, B: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Return L^-1 B or L^-T B; L is a block of the diagonal."""
    (trsm,) = get_blas_funcs(("trsm",), (L,))
    return trsm(1.0, np.ascontiguousarray(L).T, B, lower=False, trans_a=not transposed, overwrite_b=True)


def invert_in_place(L: np.ndarray, n_jobs: int | None = None) -> None:
    """Turn L into X = L^-1: row by row of blocks, X_ij = -X_ii sum_k L_ik X_kj over j <= k < i.

    A row of L is needed for the same row of X only.
    """
    (trtri,) = get_lapack_funcs(("trtri",), (L,))
    blocks = blocks_of(L)
    for number, rows in enumerate(blocks):
        corner = np.ascontiguousarray(trtri(np.ascontiguousarray(L[rows, rows]).T, lower=False)[0].T)
        old = L[rows, : rows.start].copy()
        run_all([partial(_fill_inverse, L, old, corner, rows, columns) for columns in blocks[:number]], n_jobs)
        L[rows, rows] = corner


def _fill_inverse(X: np.ndarray, old: np.ndarray, corner: np.ndarray, rows: slice, columns: slice) -> None:
    between = slice(columns.start, rows.start)
    X[rows, columns] = -corner @ (old[:, between] @ X[between, columns])


def clear_above_diagonal(A: np.ndarray) -> None:
    """Set what lies above the diagonal to zero."""
    for rows in blocks_of(A):
        A[rows, rows] = np.tril(A[rows, rows])
        A[rows, rows.stop :] = 0.0
