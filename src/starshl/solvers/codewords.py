"""The codeword step of one bit (paper Eq. 17): each codeword takes the sign with the smaller hinge loss, if it may.

Unconstrained, the objective has a trivial minimum: all codewords equal and all hash functions constant.
A constraint restricts the codewords to a set that contains the present ones, and the step is the exact
minimizer over that set, so the objective still never rises.
"""

from __future__ import annotations

import numpy as np

from .objective import hinge

__all__ = ["hinge_sums", "update_column"]


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
