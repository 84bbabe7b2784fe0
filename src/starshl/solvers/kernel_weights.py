"""The kernel-weight step of one bit (paper Eq. 16), in closed form."""

from __future__ import annotations

import numpy as np

__all__ = ["UNWEIGHTED_ABOVE", "kernel_weights"]

UNWEIGHTED_ABOVE = 1e3  # norms beyond this are treated as infinity: all weights are one
_FLOOR_BELOW_NORM = 1.05  # norms p below this have a floor of the weights
_WEIGHT_FLOOR = 1e-8  # of weights whose largest is near 1: less than float32 rounds


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
