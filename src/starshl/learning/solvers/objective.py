r"""The objective of *SHL (paper Eqs. 1, 2 and 6), and the steps that lower it in closed form (Eqs. 3, 16 and 17).

.. math:: J = C \sum_n c_n \sum_b [1 - \mu_{a_n, b} f_b(x_n)]_+ + \tfrac12 \sum_b \sum_m \|w_{b,m}\|^2 / \theta_{b,m}

The first sum is the surrogate (Eq. 2) of the distortion (Eq. 1); with the second one it is the objective of all bits
(Eq. 6). A margin is a codeword bit times a score.

Of the blocks that a descent minimizes in turn, three need no solver: unlabeled rows join the nearest codeword
(:func:`reassign`, Eq. 3), the weights of a bit's kernels follow from norms (:func:`kernel_weights`, Eq. 16), and a bit
of each codeword takes the sign of the smaller hinge loss (:func:`update_column`, Eq. 17).
"""

from __future__ import annotations

import numpy as np

from ...codes.binary import BinaryCodes

UNWEIGHTED_ABOVE = 1e3  # p of the kernel weights' p-norm that is treated as infinity: all weights are one
_FLOOR_BELOW_NORM = 1.05  # p below which weights have a floor
_WEIGHT_FLOOR = 1e-8  # of weights whose largest is near 1: less than float32 rounds
_IMPROVEMENT_TOL = 1e-12  # a smaller gain of a row is rounding


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


def squared_function_norms(quadratic_forms: np.ndarray, weights: np.ndarray) -> np.ndarray:
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


def nearest_codewords(scores: np.ndarray, codewords: np.ndarray) -> np.ndarray:
    """Return the index of each row's nearest codeword: by Hamming distance, ties by hinge, then by index."""
    hamming = hamming_distances(scores, codewords)
    tied = hamming == hamming.min(axis=1, keepdims=True)
    return np.where(tied, hinge_distances(scores, codewords), np.inf).argmin(axis=1)


def reassign(
    scores: np.ndarray,
    codewords: np.ndarray,
    assignments: np.ndarray,
    free: np.ndarray,
    protected: np.ndarray,
) -> int:
    """Move free rows to the codeword of smallest hinge distance, in place; return how many moved.

    Parameters
    ----------
    scores : (n, n_bits) decision values of all bits
    codewords : (G, n_bits) signs
    assignments : (n,) index of each row's codeword, changed in place
    free : indices of the rows that may move; all others count as members that stay
    protected : (G,) bool, codewords that must keep at least one row

    A row moves only if that lowers its distance strictly and does not empty a protected codeword; rows are
    taken by decreasing gain. Without protection the step is the exact minimizer over the assignments.
    """
    distances = hinge_distances(scores[free], codewords)
    here = assignments[free]
    best = distances.argmin(axis=1)
    gains = distances[np.arange(len(free)), here] - distances.min(axis=1)
    movers = np.flatnonzero(gains > _IMPROVEMENT_TOL)
    if len(movers) == 0:
        return 0
    sizes = np.bincount(assignments, minlength=len(codewords))
    leaving = np.bincount(here[movers], minlength=len(codewords))
    if np.all((sizes - leaving > 0) | ~protected):
        assignments[free[movers]] = best[movers]
        return len(movers)
    n_moved = 0
    for mover in movers[np.argsort(-gains[movers], kind="stable")]:
        source = here[mover]
        if sizes[source] > 1 or not protected[source]:
            sizes[source] -= 1
            sizes[best[mover]] += 1
            assignments[free[mover]] = best[mover]
            n_moved += 1
    return n_moved


def kernel_weights(squared_norms: np.ndarray, p: float, current: np.ndarray) -> np.ndarray:
    r"""Return the kernel weights of one bit, given the squared norm of each kernel's weight vector.

    .. math:: \theta_m = \|w_m\|^{2/(p+1)} \Big/ \Big(\sum_{m'} \|w_{m'}\|^{2p/(p+1)}\Big)^{1/p}

    minimizes :math:`\sum_m \|w_m\|^2 / \theta_m` over :math:`\theta \ge 0, \|\theta\|_p \le 1`; Huang et al.
    2015, Eq. (16). A kernel of zero norm gets weight zero; if all norms are zero, the current weights stay.
    Near p = 1 a zero would be absorbing, so weights have a floor of 1e-8 there.
    """
    if len(squared_norms) == 1 or p > UNWEIGHTED_ABOVE:
        return np.ones(len(squared_norms))
    largest = squared_norms.max()
    if largest <= 0.0:
        return current.copy()
    raw = (squared_norms / largest) ** (1.0 / (p + 1.0))
    weights = raw / np.linalg.norm(raw, ord=p)
    if p < _FLOOR_BELOW_NORM:
        weights = np.maximum(weights, _WEIGHT_FLOOR)
        weights /= np.linalg.norm(weights, ord=p)
    return weights


def hinge_sums(
    scores: np.ndarray, assignments: np.ndarray, cost: np.ndarray, n_codewords: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return each codeword's weighted hinge loss if this bit is +1, and if it is -1."""
    plus = np.bincount(assignments, cost * hinge(scores), minlength=n_codewords)
    minus = np.bincount(assignments, cost * hinge(-scores), minlength=n_codewords)
    return plus, minus


def update_column(
    codewords: np.ndarray,
    bit: int,
    plus: np.ndarray,
    minus: np.ndarray,
    constraint: str,
    occupied: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """Return the best column of one bit under the constraint, and whether the constraint had to be dropped.

    Parameters
    ----------
    codewords : (n_codewords, n_bits) signs before the step
    bit : the column to choose
    plus, minus : (n_codewords,) losses of +1 and of -1
    constraint : "none"; "nonconstant": not all occupied codewords agree in a bit; "distinct": that, and no
        two codewords are equal
    occupied : (n_codewords,) bool, codewords that had rows at the start: a constant column is one that is
        constant over these

    A column that gains nothing keeps its present signs. A constraint that the present column violates is
    dropped for it.
    """
    present = codewords[:, bit]
    free = np.where(plus < minus, 1, np.where(minus < plus, -1, present)).astype(present.dtype)
    if constraint == "none":
        return free, False
    groups = [[g] for g in range(len(codewords))]
    dropped = False
    if constraint == "distinct":
        if len({codeword.tobytes() for codeword in codewords}) == len(codewords):
            groups = _groups_equal_elsewhere(codewords, bit)
        else:
            dropped = True
    column = free.copy()
    for group in groups:
        if len(group) == 2:
            column[group] = _best_opposite_signs(present[group], plus[group], minus[group])
    if _is_constant(present, occupied):
        return column, True
    if _is_constant(column, occupied):
        column = _cheapest_flip(column, groups, plus, minus, occupied)
        # An equally good column is no gain; taking it could go back and forth forever.
        if _loss(column, plus, minus) >= _loss(present, plus, minus):
            column = present.copy()
    return column, dropped


def _groups_equal_elsewhere(codewords: np.ndarray, bit: int) -> list[list[int]]:
    """Group codewords that differ in this bit only; distinct codewords make groups of one or two."""
    groups: dict[bytes, list[int]] = {}
    for g, others in enumerate(np.delete(codewords, bit, axis=1)):
        groups.setdefault(others.tobytes(), []).append(g)
    return list(groups.values())


def _best_opposite_signs(present: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> np.ndarray:
    first_up, second_up = plus[0] + minus[1], minus[0] + plus[1]
    if first_up == second_up:
        return present
    return np.array([1, -1] if first_up < second_up else [-1, 1], dtype=present.dtype)


def _cheapest_flip(
    column: np.ndarray, groups: list[list[int]], plus: np.ndarray, minus: np.ndarray, occupied: np.ndarray
) -> np.ndarray:
    """Flip the group that makes an all-equal column non-constant at the smallest loss."""
    chosen = np.where(column > 0, plus, minus)
    flipped = np.where(column > 0, minus, plus)
    candidates = [group for group in groups if occupied[group].any()]
    prices = [float(np.sum(flipped[group] - chosen[group])) for group in candidates]
    repaired = column.copy()
    repaired[candidates[int(np.argmin(prices))]] *= -1
    return repaired


def _loss(column: np.ndarray, plus: np.ndarray, minus: np.ndarray) -> float:
    return float(np.where(column > 0, plus, minus).sum())


def _is_constant(column: np.ndarray, occupied: np.ndarray) -> bool:
    signs = column[occupied]
    return len(signs) > 1 and bool(np.all(signs == signs[0]))
