"""Column generation over triplets: the master problem, and the search for one more bit.

With ±1 bits h the margin of a triplet (i, j, k) is a = [h_i ≠ h_k] - [h_i ≠ h_j] = h_i (h_j - h_k) / 2, so
the score of a bit under triplet weights u is the quadratic form hᵀMh with a sparse symmetric M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.optimize import linprog, minimize

from ..codes import signs_of

__all__ = ["Master", "best_plane", "margins", "score_matrix", "smooth_score", "solve_master"]


@dataclass(frozen=True, slots=True)
class Master:
    """Solution of the restricted master problem."""

    bit_weights: np.ndarray
    triplet_weights: np.ndarray
    primal: float
    dual: float


def margins(bits: np.ndarray, triplets: np.ndarray) -> np.ndarray:
    """Return [differs from the dissimilar row] - [differs from the similar row] of each triplet and bit.

    ``bits`` has shape (n_samples, n_bits) or (n_samples,), entries ±1; the result has entries -1, 0, 1.
    """
    anchor, similar, dissimilar = triplets.T
    bits = bits.astype(np.int8)
    return bits[anchor] * (bits[similar] - bits[dissimilar]) / 2.0


def solve_master(A: np.ndarray, C: float) -> Master:
    r"""Weigh the bits so far, and the triplets by how much they still matter.

    .. math::

        \min_{w, \xi \ge 0} 1^T w + C\, 1^T \xi,\; A w \ge 1 - \xi
        \qquad\Longleftrightarrow\qquad
        \max_{0 \le u \le C} 1^T u,\; A^T u \le 1

    The dual is what is solved: it has one row per bit, the primal one per triplet. The bit weights
    are the multipliers of its rows.
    """
    n_triplets, n_bits = A.shape
    solution = linprog(-np.ones(n_triplets), A.T, np.ones(n_bits), bounds=(0, C), method="highs-ds")
    if solution.status != 0:
        raise RuntimeError(f"The linear program of the triplets was not solved: {solution.message}")
    bit_weights = np.maximum(-solution.ineqlin.marginals, 0.0)
    primal = bit_weights.sum() + C * np.maximum(1.0 - A @ bit_weights, 0.0).sum()
    return Master(bit_weights, solution.x, float(primal), float(solution.x.sum()))


def score_matrix(triplets: np.ndarray, weights: np.ndarray, n_samples: int) -> sp.csr_array:
    """Return the symmetric M with hᵀMh = Σ u_t a_t(h) for every ±1 vector h."""
    anchor, similar, dissimilar = triplets.T
    rows, columns = np.concatenate([anchor, anchor]), np.concatenate([similar, dissimilar])
    entries = np.concatenate([weights, -weights]) / 4.0
    half = sp.coo_array((entries, (rows, columns)), shape=(n_samples, n_samples)).tocsr()
    return (half + half.T).tocsr()


def smooth_score(plane: np.ndarray, X: np.ndarray, M: sp.csr_array) -> tuple[float, np.ndarray]:
    """Return -sᵀMs for s = tanh(Xv + c), and its gradient over plane = (v, c)."""
    s = np.tanh(X @ plane[:-1] + plane[-1])
    pull = M @ s
    slope = -2.0 * pull * (1.0 - s**2)
    return -float(s @ pull), np.append(slope @ X, slope.sum())


def best_plane(
    X: np.ndarray,
    M: sp.csr_array,
    n_starts: int,
    known: list[np.ndarray],
    triplets: np.ndarray,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (v, c) of the hyperplane whose bit scores highest, and its column of margins.

    The best of ``n_starts`` random planes and the spectral relaxation are improved by L-BFGS on the smooth
    score; all of them compete under the score of their actual bits. A plane whose margins equal a column in
    ``known`` is passed over unless every plane is of that kind.
    """
    planes = _random_planes(X, n_starts, rng)
    bits = signs_of(X @ planes[:, :-1].T + planes[:, -1]).astype(np.float64)
    best_random = int(np.argmax(np.einsum("ij,ij->j", bits, M @ bits)))
    starts = [planes[best_random], _spectral_plane(X, M)]
    improved = [
        minimize(smooth_score, start, (X, M), method="L-BFGS-B", jac=True, options={"maxiter": 50}).x
        for start in starts
    ]
    planes = np.vstack([*improved, *starts, planes])
    bits = signs_of(X @ planes[:, :-1].T + planes[:, -1]).astype(np.float64)
    scores = np.einsum("ij,ij->j", bits, M @ bits)
    order = np.argsort(-scores, kind="stable")
    for choice in order:
        column = margins(bits[:, choice], triplets)
        if not any(np.array_equal(column, other) for other in known):
            return planes[choice], column
    return planes[order[0]], margins(bits[:, order[0]], triplets)


def _random_planes(X: np.ndarray, n_planes: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw planes through the mean, scaled so that tanh bends within the spread of the rows."""
    directions = rng.standard_normal((n_planes, X.shape[1]))
    return np.column_stack([_scaled(directions, X), np.zeros(n_planes)])


def _spectral_plane(X: np.ndarray, M: sp.csr_array) -> np.ndarray:
    """Return the plane that maximizes the score with Xv in place of its signs."""
    last = X.shape[1] - 1
    _, vectors = eigh(X.T @ (M @ X), subset_by_index=[last, last])
    return np.append(_scaled(vectors.T, X)[0], 0.0)


def _scaled(directions: np.ndarray, X: np.ndarray) -> np.ndarray:
    spread = np.sqrt(np.square(X @ directions.T).mean(axis=0))
    return directions / np.where(spread > 0, spread, 1.0)[:, None]
