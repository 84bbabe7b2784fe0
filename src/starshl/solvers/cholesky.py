"""RidgeFactor: solves with a kernel matrix plus a ridge, and the diagonal of its inverse."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_lapack_funcs

from .._threads import single_threaded_blas

__all__ = ["RidgeFactor"]

# Share of the mean diagonal. Below it float32 Cholesky factors of kernel matrices fail or lose their last digits.
_SMALLEST_FLOAT32_RIDGE = 1e-5


class RidgeFactor:
    r"""The Cholesky factor of :math:`A = K + \mathrm{diag}(d)`, in the precision of K where that is safe.

    float64 is used for a float32 matrix if a ridge is below 1e-5 of the mean diagonal, or if float32 fails.

    Parameters
    ----------
    gram : array of shape (n, n), float32 or float64, C-contiguous, positive semidefinite
    diagonal : float or array of shape (n,), the ridge :math:`d > 0`
    overwrite : whether the lower triangle and the diagonal of ``gram`` may be destroyed, which saves a copy

    Examples
    --------
    >>> factor = RidgeFactor(np.array([[1.0, 1.0], [1.0, 1.0]]), 1.0)
    >>> factor.solve(np.array([3.0, 0.0])).round(6).tolist()
    [2.0, -1.0]
    >>> factor.inverse_diagonal().round(6).tolist()
    [0.666667, 0.666667]
    """

    def __init__(self, gram: np.ndarray, diagonal: np.ndarray | float, *, overwrite: bool = False):
        self.n_rows = len(gram)
        own = np.diag(gram).astype(np.float64)
        ridge = np.broadcast_to(np.asarray(diagonal, dtype=np.float64), own.shape)
        is_safe = gram.dtype == np.float64 or ridge.min() >= _SMALLEST_FLOAT32_RIDGE * own.mean()
        self._inverse_diagonal: np.ndarray | None = None
        with single_threaded_blas():
            factor = self._factor(gram if overwrite and is_safe else gram.copy(), own + ridge) if is_safe else None
            if factor is None and gram.dtype == np.float32:
                # The factor is in the lower triangle, so the upper one still holds the matrix.
                factor = self._factor(np.triu(gram).T.astype(np.float64, order="C"), own + ridge)
        if factor is None:
            raise np.linalg.LinAlgError(
                f"A kernel matrix of {self.n_rows} rows with a ridge of {ridge.min():.1e} is not positive definite. "
                "It needs a positive semidefinite kernel and a ridge above its rounding errors; use a larger ridge, "
                "or float64 rows."
            )
        self._L = factor

    @property
    def dtype(self) -> np.dtype:
        """The precision of the factor."""
        return self._L.dtype

    @staticmethod
    def _factor(matrix: np.ndarray, diagonal: np.ndarray) -> np.ndarray | None:
        """Return L in the lower triangle of the matrix, or None if the matrix is not positive definite."""
        matrix[np.diag_indices_from(matrix)] = diagonal
        (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
        # The transpose is what Fortran takes for the matrix, so its upper triangle is our lower one.
        _, info = potrf(matrix.T, lower=False, overwrite_a=True, clean=False)
        return matrix if info == 0 else None

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B in float64, for B of shape (n,) or (n, n_columns)."""
        with single_threaded_blas():
            if self._inverse_diagonal is not None:
                inverse = np.tril(self._L)
                return (inverse.T @ (inverse @ B.astype(self.dtype))).astype(np.float64)
            (potrs,) = get_lapack_funcs(("potrs",), (self._L,))
            solution, _ = potrs(self._L.T, B.astype(self.dtype), lower=False)
            return solution.astype(np.float64)

    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of A^-1 in float64: the column sums of squares of L^-1."""
        if self._inverse_diagonal is None:
            with single_threaded_blas():
                (trtri,) = get_lapack_funcs(("trtri",), (self._L,))
                trtri(self._L.T, lower=False, overwrite_c=True)
                inverse = np.tril(self._L)
                self._inverse_diagonal = np.einsum("ij,ij->j", inverse, inverse, dtype=np.float64)
        return self._inverse_diagonal
