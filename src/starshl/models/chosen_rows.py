"""Choose the support rows that explain the scores best, one by one."""

from __future__ import annotations

import numpy as np

__all__ = ["choose_columns"]

_NEGLIGIBLE = 1e-10  # share of the largest squared norm at which what is left of a column is rounding


def choose_columns(values: np.ndarray, targets: np.ndarray, n_chosen: int) -> np.ndarray:
    """Return the columns that, each in its turn, lower the squared error of a regression on those chosen most.

    Orthogonal least squares (Chen, Cowan and Grant 1991): a column counts by its part orthogonal to those before it.
    Fewer are returned if they span the rest. O(n_rows n_columns n_chosen).
    """
    values = values - values.mean(axis=0)
    norms = np.einsum("ij,ij->j", values, values)
    negligible = _NEGLIGIBLE * norms.max()
    products = values.T @ (targets - targets.mean(axis=0))
    directions, parts = np.zeros((n_chosen, len(values))), np.zeros((n_chosen, values.shape[1]))
    chosen: list[int] = []
    for n in range(n_chosen):
        # What is left of a chosen column is rounding; so is every column that those chosen already span.
        norms[chosen] = 0.0
        if norms.max() <= negligible:
            break
        gains = np.square(products).sum(axis=1) / np.maximum(norms, negligible)
        best = int(np.where(norms > negligible, gains, -1.0).argmax())
        direction = values[:, best] - parts[:n, best] @ directions[:n]
        length = np.linalg.norm(direction)
        chosen.append(best)
        directions[n] = direction / length
        parts[n] = directions[n] @ values
        norms -= parts[n] ** 2
        products -= np.outer(parts[n], products[best] / length)
    return np.sort(np.array(chosen, dtype=np.int64))
