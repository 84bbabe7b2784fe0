"""RidgeFactor: solves with a kernel matrix plus a ridge, and the diagonal of its inverse.

The matrix is cut into fixed blocks. Each is one long matrix product, on one BLAS thread, and threads share out the
blocks; so the bytes do not depend on the number of threads.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas
from ..triangles import blocks_of, factor_in_place, invert_in_place, solve_lower

__all__ = ["RidgeFactor"]

# Share of the mean diagonal. Below it, float32 factors of kernel matrices fail or lose their last digits.
_SMALLEST_FLOAT32_RIDGE = 1e-5


class RidgeFactor:
    r"""The Cholesky factor of :math:`A = K + \mathrm{diag}(d)`, in the precision of K where that is safe.

    A float32 matrix is factored in float64 if a ridge is below 1e-5 of its mean diagonal, or if float32 fails.
    O(n^3 / 3) to factor, and as much again for the diagonal of the inverse; both happen in place.

    Parameters
    ----------
    gram : array of shape (n, n), float32 or float64, positive semidefinite
    diagonal : float or array of shape (n,), the ridge :math:`d > 0`
    overwrite : whether the factor may take the memory of ``gram``; otherwise it is copied
    n_jobs : number of threads

    Examples
    --------
    >>> factor = RidgeFactor(np.array([[1.0, 1.0], [1.0, 1.0]]), 1.0)
    >>> factor.solve(np.array([3.0, 0.0])).round(6).tolist()
    [2.0, -1.0]
    >>> factor.inverse_diagonal().round(6).tolist()
    [0.666667, 0.666667]
    """

    def __init__(
        self,
        gram: np.ndarray,
        diagonal: np.ndarray | float,
        *,
        overwrite: bool = False,
        n_jobs: int | None = None,
    ):
        self.n_rows, self.n_jobs = len(gram), n_jobs
        self._blocks = blocks_of(gram)
        self._inverse_diagonal: np.ndarray | None = None
        precision = np.float32 if gram.dtype == np.float32 else np.float64
        can_stay = overwrite and gram.dtype == precision and gram.flags.c_contiguous and gram.flags.writeable
        self._L = gram if can_stay else np.array(gram, dtype=precision, order="C")
        self._factor(np.asarray(diagonal, dtype=np.float64))

    @property
    def dtype(self) -> np.dtype:
        """The precision of the factor."""
        return self._L.dtype

    def _factor(self, ridge: np.ndarray) -> None:
        own = np.diag(self._L).astype(np.float64)
        if self.dtype == np.float32 and np.min(ridge) < _SMALLEST_FLOAT32_RIDGE * own.mean():
            self._L = self._L.astype(np.float64)
        corners = [self._L[block, block].copy() for block in self._blocks]
        np.fill_diagonal(self._L, own + ridge)
        with single_threaded_blas():
            succeeds = factor_in_place(self._L, self.n_jobs)
            if not succeeds and self.dtype == np.float32:
                self._L = _restored(self._L, corners)
                np.fill_diagonal(self._L, own + ridge)
                succeeds = factor_in_place(self._L, self.n_jobs)
        if not succeeds:
            raise np.linalg.LinAlgError(
                f"A kernel matrix of {self.n_rows} rows with a ridge of {np.min(ridge):.1e} is not positive definite. "
                "It needs a positive semidefinite kernel whose rounding errors are smaller than the ridge; use another "
                "kernel, or rows in float64."
            )

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B in float64, for B of shape (n,) or (n, n_columns)."""
        columns = np.array(B, dtype=self.dtype).reshape(self.n_rows, -1)
        with single_threaded_blas():
            if self._inverse_diagonal is None:
                _substitute(self._L, columns)
            else:
                columns = _multiply_by_inverse(self._L, columns, self.n_jobs)
        return columns.astype(np.float64).reshape(np.shape(B))

    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of A^-1 in float64: the column sums of squares of L^-1, which replaces L."""
        if self._inverse_diagonal is None:
            with single_threaded_blas():
                invert_in_place(self._L, self.n_jobs)
                sums = run_all([partial(_column_squares, self._L, block) for block in self._blocks], self.n_jobs)
            self._inverse_diagonal = np.concatenate(sums)
        return self._inverse_diagonal


def _restored(A: np.ndarray, corners: list[np.ndarray]) -> np.ndarray:
    """Return the matrix in float64 from what a factorization in place has left above the diagonal."""
    restored = np.array(A.T, dtype=np.float64, order="C")
    for block, corner in zip(blocks_of(A), corners, strict=True):
        restored[block, block] = corner
    return restored


def _substitute(L: np.ndarray, columns: np.ndarray) -> None:
    """Turn columns into L^-T L^-1 columns."""
    blocks = blocks_of(L)
    for block in blocks:
        above = slice(0, block.start)
        columns[block] = solve_lower(L[block, block], columns[block] - L[block, above] @ columns[above])
    for block in reversed(blocks):
        below = slice(block.stop, None)
        remainder = columns[block] - L[below, block].T @ columns[below]
        columns[block] = solve_lower(L[block, block], remainder, transposed=True)


def _multiply_by_inverse(X: np.ndarray, columns: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return X' X columns, where X is L^-1."""
    blocks = blocks_of(X)
    half = np.concatenate(run_all([partial(_times_row, X, block, columns) for block in blocks], n_jobs))
    return np.concatenate(run_all([partial(_times_column, X, block, half) for block in blocks], n_jobs))


def _times_row(X: np.ndarray, block: slice, columns: np.ndarray) -> np.ndarray:
    return X[block, : block.stop] @ columns[: block.stop]


def _times_column(X: np.ndarray, block: slice, columns: np.ndarray) -> np.ndarray:
    return X[block.start :, block].T @ columns[block.start :]


def _column_squares(X: np.ndarray, columns: slice) -> np.ndarray:
    """Return the column sums of squares of a lower triangle, in float64."""
    sums = np.zeros(columns.stop - columns.start)
    for rows in blocks_of(X):
        if rows.start >= columns.start:
            block = X[rows, columns]
            sums += np.einsum("ij,ij->j", block, block, dtype=np.float64)
    return sums
