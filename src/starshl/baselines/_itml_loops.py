"""Compiled Bregman projections of information-theoretic metric learning."""

import numpy as np
from numba import njit

__all__ = ["project_once"]


@njit(cache=True, nogil=True)
def project_once(metric, differences, signs, bounds, duals, gamma):
    """Project onto every constraint once, in place; return the sum of the changes of the duals.

    ``bounds`` are the relaxed distances ξ, ``duals`` the multipliers λ, ``signs`` +1 for "at most" and -1
    for "at least". With p = vᵀAv the projection moves 1/p and 1/ξ until the two meet or λ reaches 0:

        α = min(λ, sign · γ/(γ+1) · (1/p - 1/ξ))
        1/p <- 1/p - sign·α,   1/ξ <- 1/ξ + sign·α/γ,   λ <- λ - α
    """
    n_features = metric.shape[0]
    image = np.empty(n_features)
    share = 1.0 if np.isinf(gamma) else gamma / (gamma + 1.0)
    moved = 0.0
    for c in range(differences.shape[0]):
        v = differences[c]
        image[:] = 0.0
        for i in range(n_features):
            for j in range(n_features):
                image[j] += v[i] * metric[i, j]
        p = 0.0
        for i in range(n_features):
            p += v[i] * image[i]
        # Equal rows are at distance zero in every metric: no projection can move them.
        if p < 1e-12:
            continue
        alpha = min(duals[c], signs[c] * share * (1.0 / p - 1.0 / bounds[c]))
        if alpha == 0.0:
            continue
        step = signs[c] * alpha
        bounds[c] = 1.0 / (1.0 / bounds[c] + step / gamma)
        duals[c] -= alpha
        moved += abs(alpha)
        beta = step / (1.0 - step * p)
        for i in range(n_features):
            scaled = beta * image[i]
            for j in range(n_features):
                metric[i, j] += scaled * image[j]
    return moved
