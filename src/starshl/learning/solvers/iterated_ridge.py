r"""Ridge regression on many rows by conjugate gradients: O(n^2) per step, where a Cholesky factor takes O(n^3).

The system :math:`A = K + \mathrm{diag}(d)` is preconditioned by a matrix that is easy to invert: the kernel as it is
between rows of one block of similar rows, and its projection onto landmarks between all others,

.. math:: P = \Phi \Phi^\top + \mathrm{blockdiag}(K - \Phi \Phi^\top) + \mathrm{diag}(d).

Solutions are as exact as their tolerance. The diagonal of the inverse is that of :math:`P^{-1}`, corrected by one
factor so that it agrees with some rows whose entry is solved for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..._common.threads import run_all, single_threaded_blas
from ..linalg import factor_in_place, gram, inverse_of_kernel, invert_in_place, project

# Tests replace all three. The first two balance what P costs with how many steps it saves.
LANDMARKS = 1000
BLOCK_ROWS = 1000  # at most
MOST_STEPS = 100
_SPLIT_FEATURES = 256  # by which rows are sorted into blocks
_POWER_STEPS = 3  # toward the direction in which rows differ most
_JITTER = 1e-6  # share of the landmarks' diagonal
_TOLERANCE = 1e-3  # of the residual, in the norm of P^-1, relative to the targets
_TRIAL_TOLERANCE = 0.1  # the same where only the entry of the row itself is wanted, which errs by the square of it
_TRIALS = 32  # rows whose entry of the inverse is solved for


@dataclass(frozen=True, slots=True)
class IteratedSolution:
    """What the steps found.

    Parameters
    ----------
    dual : array of shape (n_rows, n_targets)
    inverse_diagonal : array of shape (n_rows,), approximately that of A^-1
    n_steps : int
    """

    dual: np.ndarray
    inverse_diagonal: np.ndarray
    n_steps: int


def solve_by_steps(kernel: np.ndarray, ridges: np.ndarray, targets: np.ndarray, seed: int) -> IteratedSolution | None:
    """Return the solution of ``(kernel + diag(ridges)) dual = targets``, or None if steps do not lead there.

    Parameters
    ----------
    kernel : symmetric array of shape (n_rows, n_rows), float32 or float64, which stays as it is
    ridges : array of shape (n_rows,)
    targets : array of shape (n_rows, n_targets)
    seed : int, draws landmarks and trial rows
    """
    rng = np.random.RandomState(seed)
    trial = np.sort(rng.permutation(len(kernel))[:_TRIALS])
    n_targets, own = targets.shape[1], (trial, targets.shape[1] + np.arange(len(trial)))
    columns = np.zeros((len(kernel), n_targets + len(trial)), dtype=kernel.dtype)
    columns[:, :n_targets] = targets
    columns[own] = 1.0
    tolerances = np.full(columns.shape[1], _TOLERANCE)
    tolerances[n_targets:] = _TRIAL_TOLERANCE
    try:
        approximate = Preconditioner(kernel, ridges, rng)
    except np.linalg.LinAlgError:
        return None
    found = _conjugate_gradients(kernel, ridges, columns, tolerances, approximate)
    if found is None:
        return None
    solution, n_steps = found
    diagonal = _corrected(approximate.inverse_diagonal(), ridges, trial, solution[own].astype(np.float64))
    return IteratedSolution(np.ascontiguousarray(solution[:, :n_targets]), diagonal, n_steps)


def _conjugate_gradients(
    kernel: np.ndarray, ridges: np.ndarray, columns: np.ndarray, tolerances: np.ndarray, approximate: Preconditioner
) -> tuple[np.ndarray, int] | None:
    """Return the solution for each column, and after how many steps all of them were near enough.

    Columns that are near enough take no part in further steps.
    """
    dtype, ridge = kernel.dtype, ridges.astype(kernel.dtype)[:, None]
    solution, places = np.empty_like(columns), np.arange(columns.shape[1])
    found, residual = np.zeros_like(columns), columns.copy()
    direction = approximate.solve(residual)
    size = _inner(residual, direction)
    enough = tolerances**2 * size
    for step in range(1, MOST_STEPS + 1):
        image = project(kernel, direction.T) + ridge * direction
        length = _quotient(size, _inner(direction, image)).astype(dtype)
        found += length * direction
        residual -= length * image
        nearer = approximate.solve(residual)
        after = _inner(residual, nearer)
        if not np.all(np.isfinite(after)):
            return None
        far = after > enough
        direction = nearer + _quotient(after, size).astype(dtype) * direction
        size = after
        if not far.all():
            solution[:, places[~far]] = found[:, ~far]
            if not far.any():
                return solution, step
            places, size, enough = places[far], size[far], enough[far]
            found, residual, direction = found[:, far], residual[:, far], direction[:, far]
    return None


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return zero for a column of zeros, which has nowhere to go."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", A, B, dtype=np.float64)


def _corrected(diagonal: np.ndarray, ridges: np.ndarray, trial: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the diagonal of the inverse from that of P^-1 and the true entries of some rows.

    The inverse of an entry is the row's ridge plus what other rows leave open about the row; that part is what P, which
    knows of fewer other rows, has too much of.
    """
    left = np.maximum(1.0 / diagonal - ridges, 0.0)
    true = np.maximum(1.0 / entries - ridges[trial], 0.0)
    known = left[trial] > 0
    factor = float(np.median(true[known] / left[trial][known])) if known.any() else 1.0
    corrected = 1.0 / (ridges + factor * left)
    corrected[trial] = entries
    return corrected


class Preconditioner:
    """P above, by Woodbury's identity: P^-1 = B - U U', where B holds the inverses of blocks."""

    def __init__(self, kernel: np.ndarray, ridges: np.ndarray, rng: np.random.RandomState):
        n_rows = len(kernel)
        landmarks = np.sort(rng.permutation(n_rows)[:LANDMARKS])
        with single_threaded_blas():
            inverse = _inverse_factor(kernel[np.ix_(landmarks, landmarks)].astype(np.float64), _JITTER)
        features = project(kernel[:, landmarks], inverse)
        self.blocks = _similar_rows(features[:, :_SPLIT_FEATURES], np.arange(n_rows), -(-n_rows // BLOCK_ROWS), rng)
        with single_threaded_blas():
            self.inverses = run_all([partial(_inverse_of_block, kernel, features, ridges, b) for b in self.blocks])
        across = self._within_blocks(features)
        inner = gram(features, across)
        inner.flat[:: len(inner) + 1] += 1.0
        with single_threaded_blas():
            inverse = _inverse_factor(inner, 0.0)
        self.across = project(across, inverse)

    def solve(self, columns: np.ndarray) -> np.ndarray:
        """Return P^-1 times some columns."""
        inner = gram(self.across, columns).astype(columns.dtype)
        return self._within_blocks(columns) - project(self.across, inner.T)

    def inverse_diagonal(self) -> np.ndarray:
        """Return the diagonal of P^-1 in float64."""
        diagonal = -np.einsum("ij,ij->i", self.across, self.across, dtype=np.float64)
        for block, inverse in zip(self.blocks, self.inverses, strict=True):
            diagonal[block] += inverse.diagonal()
        return diagonal

    def _within_blocks(self, columns: np.ndarray) -> np.ndarray:
        product = np.empty_like(columns)

        def fill(block: np.ndarray, inverse: np.ndarray) -> None:
            product[block] = inverse @ columns[block]

        with single_threaded_blas():
            run_all([partial(fill, *pair) for pair in zip(self.blocks, self.inverses, strict=True)])
        return product


def _inverse_factor(matrix: np.ndarray, jitter: float) -> np.ndarray:
    """Return L^-1 for matrix = L L'; the matrix is overwritten."""
    matrix.flat[:: len(matrix) + 1] += jitter * float(np.mean(matrix.diagonal()))
    if not factor_in_place(matrix):
        raise np.linalg.LinAlgError("The kernel matrix of the landmarks is not positive definite.")
    invert_in_place(matrix)
    return np.tril(matrix)


def _inverse_of_block(kernel: np.ndarray, features: np.ndarray, ridges: np.ndarray, block: np.ndarray) -> np.ndarray:
    rest = (kernel[np.ix_(block, block)] - features[block] @ features[block].T).astype(np.float64)
    rest.flat[:: len(rest) + 1] += ridges[block]
    return inverse_of_kernel(rest).astype(kernel.dtype)


def _similar_rows(
    features: np.ndarray, rows: np.ndarray, n_blocks: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Cut rows into blocks of nearly equal size, again and again across the direction in which they differ most."""
    if n_blocks == 1:
        return [rows]
    centered = features[rows] - features[rows].mean(axis=0)
    direction = np.asarray(rng.standard_normal(features.shape[1]), dtype=features.dtype)
    with single_threaded_blas():
        for _ in range(_POWER_STEPS):
            direction = centered.T @ (centered @ direction)
            direction /= float(np.linalg.norm(direction)) or 1.0
        order = np.argsort(centered @ direction, kind="stable")
    n_first = n_blocks // 2
    cut = len(rows) * n_first // n_blocks
    first, second = np.sort(rows[order[:cut]]), np.sort(rows[order[cut:]])
    return _similar_rows(features, first, n_first, rng) + _similar_rows(features, second, n_blocks - n_first, rng)
