"""Ridge regression of many targets at once, in three sizes.

:class:`FeatureRidge` and :class:`KernelRidge` factor once and then solve for each new set of codes.
:class:`RidgeFactor` does the same in place, for kernel matrices that fill the memory. :class:`RidgeSums` never holds
all rows: features come block by block, and the solution scores rows without themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._common.threads import run_all, single_threaded_blas, tiles
from ..linalg import blocks_of, clear_above_diagonal, factor_in_place, gram, invert_in_place, project, solve_lower

# Share of the mean diagonal. Below it, float32 factors of kernel matrices fail or lose their last digits.
# Tests replace it to see what happens when they fail.
SMALLEST_FLOAT32_RIDGE = 1e-5
_EQUAL_COLUMNS_RIDGE = 1e-6  # of least squares, a share of the mean square: just enough where features are equal
_PIECE = 512  # features a side; products of a block of rows are summed piece by piece
_SMALLEST_REMAINDER = 1e-6  # of 1 - leverage, what float32 can tell from zero


def share_of_diagonal(share: float, diagonal: np.ndarray) -> float:
    r"""Return a penalty :math:`\rho` in the units of the problem: a share of the mean diagonal it is added to.

    The same share then means the same for any number of rows and any unit of the features.

    Examples
    --------
    >>> share_of_diagonal(0.1, np.array([1.0, 3.0]))
    0.2
    """
    mean = float(np.mean(diagonal))
    return share * (mean if mean > 0 else 1.0)


def ridge_solve(A: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    r"""Return :math:`\arg\min_W \|B - A W\|^2 + \rho\|W\|^2 = (A^\top A + \rho I)^{-1} A^\top B`."""
    with single_threaded_blas():
        return cho_solve(_ridged_factor(gram(A), ridge), gram(A, B))


def least_squares(features: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of shape (n_targets, n_features) and intercepts of least squares; features may be equal."""
    # In units of the features, which may be of any size.
    size = np.sqrt(np.mean(np.square(features, dtype=np.float64))) or 1.0
    regression = FeatureRidge(features / size, _EQUAL_COLUMNS_RIDGE * len(features))
    coefficients, intercept = regression.split(regression.solve(targets))
    return coefficients / size, intercept


class FeatureRidge:
    r"""Regress codes H on features with a constant one appended.

    .. math:: \min_P\ \|H - \Phi P\|^2 + \rho \|P\|^2, \qquad \Phi = [\text{features}, 1]

    Parameters
    ----------
    features : array of shape (n_samples, n_features), float64
    ridge : float, :math:`\rho > 0`
    """

    def __init__(self, features: np.ndarray, ridge: float):
        self.ridge = ridge
        self._design = np.hstack([features, np.ones((len(features), 1))])
        with single_threaded_blas():
            self._factor = _ridged_factor(gram(self._design), ridge)

    def solve(self, H: np.ndarray) -> np.ndarray:
        """Return the minimizer P, shape (n_features + 1, n_bits)."""
        with single_threaded_blas():
            return cho_solve(self._factor, gram(self._design, H))

    def predict(self, P: np.ndarray) -> np.ndarray:
        """Return the fitted values, shape (n_samples, n_bits)."""
        return project(self._design, P.T)

    def loss(self, H: np.ndarray, P: np.ndarray) -> float:
        """Return the objective at H and P."""
        return float(np.sum((H - self.predict(P)) ** 2) + self.ridge * np.sum(P**2))

    def split(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (n_bits, n_features) and intercepts of shape (n_bits,)."""
        return P[:-1].T, P[-1]


class KernelRidge:
    r"""Regress codes H on all rows through a kernel, whose constant 1 makes room for an intercept.

    .. math:: \min_P\ \|H - K P\|^2 + \rho\,\mathrm{tr}(P^\top K P), \qquad K = \text{gram} + 1,

    solved by :math:`P = (K + \rho I)^{-1} H`; O(n^3) to factor.

    Parameters
    ----------
    kernel : array of shape (n_samples, n_samples), float64, positive semidefinite
    ridge : float, :math:`\rho > 0`
    """

    def __init__(self, kernel: np.ndarray, ridge: float):
        self.ridge = ridge
        self._design = kernel + 1.0
        with single_threaded_blas():
            self._factor = _ridged_factor(self._design.copy(), ridge)

    def size_of(self) -> int:
        """Return the bytes that its matrices take."""
        return self._design.nbytes + self._factor[0].nbytes

    def solve(self, H: np.ndarray) -> np.ndarray:
        """Return the minimizer P, shape (n_samples, n_bits)."""
        with single_threaded_blas():
            return cho_solve(self._factor, H)

    def predict(self, P: np.ndarray) -> np.ndarray:
        """Return the fitted values, shape (n_samples, n_bits)."""
        return project(self._design, P.T)

    def loss(self, H: np.ndarray, P: np.ndarray) -> float:
        """Return the objective at H and P."""
        fitted = self.predict(P)
        return float(np.sum((H - fitted) ** 2) + self.ridge * np.sum(P * fitted))

    def split(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of shape (n_bits, n_samples) and intercepts of shape (n_bits,)."""
        return P.T, P.sum(axis=0)


def _ridged_factor(matrix: np.ndarray, ridge: float) -> tuple[np.ndarray, bool]:
    matrix[np.diag_indices_from(matrix)] += ridge
    return cho_factor(matrix, overwrite_a=True, check_finite=False)


class RidgeFactor:
    r"""The Cholesky factor of :math:`A = K + \mathrm{diag}(d)`, in the precision of K where that is safe.

    A float32 matrix is factored in float64 if a ridge is below 1e-5 of its mean diagonal, or if float32 fails.
    O(n^3 / 3) to factor, and as much again for the diagonal of the inverse; both happen in place.

    Parameters
    ----------
    gram : array of shape (n, n), float32 or float64, positive semidefinite
    diagonal : float or array of shape (n,), the ridge :math:`d > 0`
    overwrite : whether the factor may take the memory of ``gram``; otherwise it is copied

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
        if self.dtype == np.float32 and np.min(ridge) < SMALLEST_FLOAT32_RIDGE * own.mean():
            self._L = self._L.astype(np.float64)
        corners = [self._L[block, block].copy() for block in self._blocks]
        np.fill_diagonal(self._L, own + ridge)
        with single_threaded_blas():
            succeeds = factor_in_place(self._L)
            if not succeeds and self.dtype == np.float32:
                self._L = _restored(self._L, corners)
                np.fill_diagonal(self._L, own + ridge)
                succeeds = factor_in_place(self._L)
        if not succeeds:
            raise np.linalg.LinAlgError(
                f"A kernel matrix of {self.n_rows} rows with a ridge of {np.min(ridge):.1e} is not positive definite. "
                "It needs a positive semidefinite kernel whose rounding errors are smaller than the ridge; use another "
                "kernel, or rows in float64."
            )

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B for B of shape (n,) or (n, n_columns), in the wider precision of both."""
        columns = np.array(B, dtype=self.dtype).reshape(self.n_rows, -1)
        with single_threaded_blas():
            if self._inverse_diagonal is None:
                _substitute(self._L, columns)
            else:
                columns = _multiply_by_inverse(self._L, columns)
        return columns.astype(np.result_type(B, self.dtype), copy=False).reshape(np.shape(B))

    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of A^-1 in float64: the column sums of squares of L^-1, which replaces L."""
        if self._inverse_diagonal is None:
            with single_threaded_blas():
                invert_in_place(self._L)
                sums = run_all([partial(_column_squares, self._L, block) for block in self._blocks])
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


def _multiply_by_inverse(X: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return X' X columns, where X is L^-1."""
    blocks = blocks_of(X)
    half = np.concatenate(run_all([partial(_times_row, X, block, columns) for block in blocks]))
    return np.concatenate(run_all([partial(_times_column, X, block, half) for block in blocks]))


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
