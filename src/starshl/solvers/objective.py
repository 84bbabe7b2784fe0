r"""The objective of *SHL, term by term: the only place where the paper's Eqs. 1, 2 and 6 are written down.

.. math:: J = C \sum_n c_n \sum_b [1 - \mu_{a_n, b} f_b(x_n)]_+ + \tfrac12 \sum_b \sum_m \|w_{b,m}\|^2 / \theta_{b,m}

The first sum is the surrogate (Eq. 2) of the distortion (Eq. 1); with the second one it is the objective of all bits
(Eq. 6). A margin is a codeword bit times a score.
"""

from __future__ import annotations

import numpy as np

from ..codes import BinaryCodes

__all__ = [
    "bit_objective",
    "box",
    "distortion",
    "hamming_distances",
    "hinge",
    "hinge_distances",
    "penalty",
    "squared_norms",
    "surrogate",
]


def hinge(margins: np.ndarray) -> np.ndarray:
    """Return max(0, 1 - margin)."""
    return np.maximum(0.0, 1.0 - margins)


def hinge_distances(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return sum_b hinge(codewords[g, b] scores[n, b]) for all rows and codewords, shape (n, G); paper Eq. 2."""
    scores = np.asarray(scores, dtype=np.float64)
    is_plus = (codewords > 0).astype(np.float64)
    return hinge(scores) @ is_plus.T + hinge(-scores) @ (1.0 - is_plus).T


def hamming_distances(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return the number of bits in which a row's code differs from each codeword, shape (n, G); paper Eq. 1."""
    signs = BinaryCodes.from_scores(scores).to_signs().astype(np.float64)
    return ((codewords.shape[1] - signs @ codewords.T.astype(np.float64)) / 2).astype(np.int64)


def surrogate(scores: np.ndarray, own_codewords: np.ndarray, cost: np.ndarray) -> float:
    """Return the weighted hinge distances of rows to their own codewords, both (n, n_bits); paper Eq. 2."""
    return float(cost @ hinge(own_codewords * scores).sum(axis=1))


def distortion(
    scores: np.ndarray, codewords: np.ndarray, assignments: np.ndarray, free: np.ndarray, cost: np.ndarray
) -> float:
    """Return the weighted Hamming distances of labeled rows to their codeword, of free rows to the nearest; Eq. 1."""
    distances = hamming_distances(scores, codewords)
    own = distances[np.arange(len(scores)), assignments]
    return float(cost @ np.where(free, distances.min(axis=1), own))


def squared_norms(quadratic_forms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return |w_m|^2 = theta_m^2 eta' K_m eta of a function fitted with these kernel weights."""
    return weights**2 * quadratic_forms


def penalty(norms: np.ndarray, weights: np.ndarray) -> float:
    """Return sum_m |w_m|^2 / theta_m / 2, the regularizer of one bit, where 0 / 0 is 0 and x / 0 infinity."""
    used = norms > 0.0
    if np.any(weights[used] == 0.0):
        return np.inf
    return float(0.5 * np.sum(norms[used] / weights[used]))


def bit_objective(margins: np.ndarray, upper: np.ndarray, regularizer: float) -> float:
    """Return the objective of one bit (paper Eq. 6), where ``upper`` holds C times the cost of each row."""
    return float(upper @ hinge(margins)) + regularizer


def box(labels: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the signed dual coefficients eta = alpha * label; paper Eq. 7."""
    return np.where(labels > 0, 0.0, -upper), np.where(labels > 0, upper, 0.0)
