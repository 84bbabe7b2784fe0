r"""Ridge regression onto classes over features that come block by block, and scores of rows without themselves.

With weights W of the rows, one-hot classes Y and a constant feature :math:`\sqrt c`,

.. math:: A = \Phi^\top W \Phi + \rho I = R R^\top, \qquad f(x) = \phi(x)^\top A^{-1} \Phi^\top W Y .

The features :math:`u(x) = R^{-1} \phi(x)` turn A into the identity, so that the leverage of row n is
:math:`w_n \|u_n\|^2`, and leaving it out gives it the score

.. math:: h_n = \frac{f_n - \ell_n Y_n}{1 - \ell_n}, \qquad \ell_n = w_n \|u_n\|^2 .

If the features have the kernel K as their inner product, this is kernel ridge regression with
:math:`K + c + \rho W^{-1}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from ..triangles import clear_above_diagonal, factor_in_place, invert_in_place

__all__ = ["RidgeSums", "StreamedSolution"]

_PIECE = 512  # features a side; products of a block of rows are summed piece by piece
_SMALLEST_REMAINDER = 1e-6  # of 1 - leverage, what float32 can tell from zero


@dataclass(frozen=True, slots=True)
class StreamedSolution:
    """The solution in the features u, of which the last belongs to the constant.

    Parameters
    ----------
    coefficients : array of shape (n_features, n_classes), for the features that came in
    intercept : array of shape (n_classes,)
    whitening : array of shape (n_features, n_features), lower triangular: u without its last entry is whitening @ phi
    constant : the constant feature
    last_row : array of shape (n_features + 1,), the last row of R
    normalized : array of shape (n_features + 1, n_classes), coefficients for u
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    whitening: np.ndarray
    constant: float
    last_row: np.ndarray
    normalized: np.ndarray

    def leave_one_out(self, whitened: np.ndarray, index: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what fits without each row predict for it, in float64, given the first features u of the rows."""
        dtype = whitened.dtype
        with single_threaded_blas():
            last = (self.constant - whitened @ self.last_row[:-1].astype(dtype)) / self.last_row[-1]
            scores = (whitened @ self.normalized[:-1].astype(dtype)).astype(np.float64)
        scores += last[:, None] * self.normalized[-1]
        leverage = weights * (np.einsum("ij,ij->i", whitened, whitened, dtype=np.float64) + last**2)
        scores[np.arange(len(scores)), index] -= leverage
        return scores / np.maximum(1.0 - leverage, _SMALLEST_REMAINDER)[:, None]


class RidgeSums:
    """The sums over rows that a ridge regression needs; memory does not grow with the number of rows.

    Parameters
    ----------
    n_features, n_classes : int
    n_jobs : number of threads; the sums are the same for any number
    """

    def __init__(self, n_features: int, n_classes: int, n_jobs: int | None = None):
        self.n_jobs = n_jobs
        self.n_features = n_features
        self._matrix = np.zeros((n_features + 1, n_features + 1))  # its lower triangle; the last row is the constant's
        self.by_class = np.zeros((n_features, n_classes))
        self.counts = np.zeros(n_classes)

    def __add__(self, other: RidgeSums) -> RidgeSums:
        """Return the sums over the rows of both."""
        both = RidgeSums(self.n_features, len(self.counts), self.n_jobs)
        np.add(self._matrix, other._matrix, out=both._matrix)
        np.add(self.by_class, other.by_class, out=both.by_class)
        np.add(self.counts, other.counts, out=both.counts)
        return both

    def add(self, features: np.ndarray, index: np.ndarray, weights: np.ndarray) -> None:
        """Add a block of rows, each of a class; the block is summed in its precision, blocks in float64.

        ``features`` is overwritten.
        """
        roots = np.sqrt(weights).astype(features.dtype)
        if np.any(roots != 1.0):
            features *= roots[:, None]
        targets = np.zeros((len(index), len(self.counts)), dtype=features.dtype)
        targets[np.arange(len(index)), index] = roots
        pieces = tiles(self.n_features, _PIECE)
        tasks = [partial(self._add_piece, features, rows, columns) for rows in pieces for columns in pieces]
        tasks = [task for task in tasks if task.args[1].start >= task.args[2].start]
        with single_threaded_blas():
            run_all([*tasks, *(partial(self._add_targets, features, targets, rows) for rows in pieces)], self.n_jobs)
        self.counts += np.bincount(index, weights, minlength=len(self.counts))

    def _add_piece(self, features: np.ndarray, rows: slice, columns: slice) -> None:
        self._matrix[rows, columns] += features[:, rows].T @ features[:, columns]

    def _add_targets(self, features: np.ndarray, targets: np.ndarray, rows: slice) -> None:
        self.by_class[rows] += features[:, rows].T @ targets

    def solve(self, ridge: float, constant: float, *, overwrite: bool = False) -> StreamedSolution:
        """Return the solution for a ridge and a constant kernel; with ``overwrite`` the sums are used up."""
        matrix = self._matrix if overwrite else self._matrix.copy()
        root = float(np.sqrt(constant))
        matrix[-1, :-1] = root * self.by_class.sum(axis=1)
        matrix[-1, -1] = constant * self.counts.sum()
        matrix.flat[:: len(matrix) + 1] += ridge
        with single_threaded_blas():
            if not factor_in_place(matrix, self.n_jobs):
                raise np.linalg.LinAlgError(
                    f"The sums over {self.n_features} features with a ridge of {ridge:.1e} are not positive definite: "
                    "they are not finite, or rounded too coarsely. Check the entries of X, or use fewer landmarks."
                )
            last_row = matrix[-1].copy()
            invert_in_place(matrix, self.n_jobs)
            clear_above_diagonal(matrix)
            normalized = matrix @ np.vstack([self.by_class, root * self.counts])
            solution = matrix.T @ normalized
        return StreamedSolution(solution[:-1], root * solution[-1], matrix[:-1, :-1], root, last_row, normalized)
