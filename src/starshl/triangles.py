"""Cholesky factors and their inverses in place, by blocks.

Each block is one long matrix product, on one BLAS thread, and threads share out the blocks; so the bytes do not depend
on the number of threads.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from ._threads import run_all, tiles

__all__ = ["BLOCK", "blocks_of", "clear_above_diagonal", "factor_in_place", "invert_in_place", "solve_lower"]

BLOCK = 256  # rows


def blocks_of(A: np.ndarray) -> list[slice]:
    """Return the blocks into which the rows, and the columns, of a square matrix are cut."""
    return tiles(len(A), BLOCK)


def factor_in_place(A: np.ndarray, n_jobs: int | None) -> bool:
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


def invert_in_place(L: np.ndarray, n_jobs: int | None) -> None:
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
