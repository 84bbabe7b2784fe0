"""Known class shares: scores shifted per class so that each class gets its share of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["check_class_shares", "shift_to_shares"]

_N_STEPS = 200  # at most; it stops once shares are met to a thousandth
_SHARPNESS = 8.0  # of the soft assignment, in typical leads of the best class over the second


def check_class_shares(class_shares: Mapping[Any, float] | ArrayLike, classes: np.ndarray) -> np.ndarray:
    """Return one positive share per class, in the order of the classes, summing to one."""
    known = classes.tolist()
    if isinstance(class_shares, Mapping):
        if class_shares.keys() != set(known):
            raise ValueError(
                f"class_shares names the classes {sorted(class_shares, key=str)}; the labels name {known}. "
                "Give one share for each labeled class."
            )
        values = np.array([class_shares[label] for label in known], dtype=np.float64)
    else:
        values = np.asarray(class_shares, dtype=np.float64)
    if values.shape != (len(known),):
        raise ValueError(
            f"class_shares has shape {values.shape}; there are {len(known)} labeled classes, so it must be "
            f"({len(known)},), in the order {known}, or a mapping from class to share."
        )
    if not np.isfinite(values).all() or np.any(values <= 0):
        raise ValueError("class_shares has entries that are not positive numbers; every class needs a share above 0.")
    return values / values.sum()


def shift_to_shares(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return scores + b with one number b per class, such that classes win about their shares of the rows.

    b solves mean_n softmax(T (scores_n + b)) = shares by alternate scaling (Sinkhorn), with T so large that most rows
    belong to one class.

    Examples
    --------
    >>> scores = np.array([[0.0, 0.1], [0.0, 0.2], [0.0, 0.3], [0.0, 0.4]])
    >>> shift_to_shares(scores, np.array([0.5, 0.5])).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    best_two = np.partition(scores, -2, axis=1)[:, -2:]
    lead = float(np.median(best_two[:, 1] - best_two[:, 0]))
    sharpness = _SHARPNESS / (lead or 1.0)
    shift = np.zeros(scores.shape[1])
    for _ in range(_N_STEPS):
        values = sharpness * (scores + shift)
        values -= values.max(axis=1, keepdims=True)
        np.exp(values, out=values)
        values /= values.sum(axis=1, keepdims=True)
        step = np.log(shares / np.maximum(values.mean(axis=0), 1e-12)) / sharpness
        shift += step
        if np.abs(step).max() * sharpness < 1e-3:
            break
    return scores + (shift - shift.mean())
