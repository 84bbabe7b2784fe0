"""Compiled parameter update of the autoencoder."""

import numpy as np
from numba import njit

__all__ = ["adam_step"]


@njit(cache=True, nogil=True)
def adam_step(parameters, gradient, first_moment, second_moment, step_size, n_step):
    """Move the parameters by one step of Adam (Kingma and Ba 2015, Algorithm 1), in place."""
    keep_first, keep_second = np.float32(0.9), np.float32(0.999)
    rest_first, rest_second = np.float32(0.1), np.float32(0.001)
    # The bias corrections of both moments folded into one step size and one epsilon.
    root_correction = np.sqrt(1.0 - 0.999**n_step)
    step = np.float32(step_size * root_correction / (1.0 - 0.9**n_step))
    epsilon = np.float32(1e-8 * root_correction)
    for i in range(parameters.shape[0]):
        g = gradient[i]
        first_moment[i] = keep_first * first_moment[i] + rest_first * g
        second_moment[i] = keep_second * second_moment[i] + rest_second * g * g
        parameters[i] -= step * first_moment[i] / (np.sqrt(second_moment[i]) + epsilon)
