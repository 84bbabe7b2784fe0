"""Restricted Boltzmann machines and the sigmoid autoencoder they unroll into.

All parameters of a network live in one flat vector: the optimizer sees a vector, a model file one array,
and :func:`layer_views` gives each layer its weights and biases without copying.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import expit

from ._autoencoder_loops import adam_step

__all__ = [
    "encode_rows",
    "finetune",
    "layer_views",
    "n_parameters",
    "reconstruction_loss",
    "train_rbm",
    "unroll",
]


def n_parameters(sizes: tuple[int, ...]) -> int:
    """Return the number of weights and biases of a chain of layers of the given sizes."""
    return sum((below + 1) * above for below, above in itertools.pairwise(sizes))


def layer_views(parameters: np.ndarray, sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (weights of shape (below, above), biases of shape (above,)) of each layer, as views."""
    views, start = [], 0
    for below, above in itertools.pairwise(sizes):
        weights = parameters[start : start + below * above].reshape(below, above)
        start += below * above
        views.append((weights, parameters[start : start + above]))
        start += above
    return views


def encode_rows(rows: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the pre-activations of the last layer."""
    for weights, biases in layers[:-1]:
        rows = expit(rows @ weights + biases)
    weights, biases = layers[-1]
    return rows @ weights + biases


def train_rbm(
    rows: np.ndarray,
    n_hidden: int,
    rng: np.random.RandomState,
    *,
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fit one restricted Boltzmann machine by one-step contrastive divergence (Hinton 2002).

    Hidden units are sampled once, visible ones are mean-field: for a batch V with hidden probabilities H,
    sampled states S, reconstruction V' = σ(S Wᵀ + a) and H' = σ(V' W + c), the weights follow
    VᵀH - V'ᵀH'. Returns weights (n_visible, n_hidden), visible biases, hidden biases and the mean squared
    reconstruction error of each epoch.
    """
    dtype = rows.dtype
    # Weights and biases start as in Hinton's guide to training such machines (2010).
    weights = (0.01 * rng.standard_normal((rows.shape[1], n_hidden))).astype(dtype)
    # Biases at the log-odds of the data spare the weights the work of learning the mean; those of constant features,
    # which would be infinite, are cut off.
    share = np.clip(rows.mean(axis=0), 0.01, 0.99)
    visible, hidden = np.log(share / (1 - share)), np.zeros(n_hidden, dtype)
    speeds = [np.zeros_like(weights), np.zeros_like(visible), np.zeros_like(hidden)]
    errors = np.zeros(n_epochs)
    for epoch in range(n_epochs):
        for batch in _batches(len(rows), batch_size, rng):
            data = rows[batch]
            on = expit(data @ weights + hidden)
            states = (rng.random_sample(on.shape) < on).astype(dtype)
            again = expit(states @ weights.T + visible)
            on_again = expit(again @ weights + hidden)
            rate = learning_rate / len(data)
            slopes = (data.T @ on - again.T @ on_again, (data - again).sum(0), (on - on_again).sum(0))
            for speed, slope in zip(speeds, slopes, strict=True):
                speed *= momentum
                speed += rate * slope
            speeds[0] -= (learning_rate * weight_decay) * weights
            weights += speeds[0]
            visible += speeds[1]
            hidden += speeds[2]
            errors[epoch] += float(((data - again) ** 2).sum())
    return weights, visible, hidden, errors / rows.size


def unroll(machines: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[tuple[int, ...], np.ndarray]:
    """Return sizes and parameters of the autoencoder that starts as a stack of (weights, visible, hidden).

    The decoder starts as the transposed encoder and may differ from it afterward.
    """
    up = [(weights, hidden) for weights, _, hidden in machines]
    down = [(weights.T, visible) for weights, visible, _ in reversed(machines)]
    sizes = (up[0][0].shape[0], *(biases.shape[0] for _, biases in up + down))
    return sizes, np.concatenate([part.ravel() for layer in up + down for part in layer])


def reconstruction_loss(
    parameters: np.ndarray, sizes: tuple[int, ...], rows: np.ndarray, code_noise: np.ndarray
) -> tuple[float, np.ndarray]:
    r"""Return the mean cross-entropy of the reconstruction and its gradient over all parameters.

    .. math:: \frac1n \sum_{n,d} \log(1 + e^{z_{nd}}) - x_{nd} z_{nd}

    with z the pre-activations of the output. ``code_noise`` is added to those of the middle layer.
    """
    layers = layer_views(parameters, sizes)
    middle = len(layers) // 2
    signals = [rows]
    for depth, (weights, biases) in enumerate(layers, start=1):
        z = signals[-1] @ weights + biases
        if depth == middle:
            z += code_noise
        signals.append(expit(z))
    loss = float((np.logaddexp(0.0, z) - rows * z).sum()) / len(rows)

    gradient = np.empty_like(parameters)
    delta = (signals[-1] - rows) / len(rows)
    for depth, (slope, bias_slope) in reversed(list(enumerate(layer_views(gradient, sizes)))):
        np.matmul(signals[depth].T, delta, out=slope)
        np.sum(delta, axis=0, out=bias_slope)
        if depth:
            delta = (delta @ layers[depth][0].T) * (signals[depth] * (1 - signals[depth]))
    return loss, gradient


def finetune(
    parameters: np.ndarray,
    sizes: tuple[int, ...],
    rows: np.ndarray,
    code_noise: np.ndarray,
    rng: np.random.RandomState,
    *,
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
) -> np.ndarray:
    """Lower the reconstruction loss by Adam, in place; return the mean loss of each epoch.

    Row n keeps its noise ``code_noise[n]`` in all epochs, so only codes far from zero carry information.
    """
    first_moment, second_moment = np.zeros_like(parameters), np.zeros_like(parameters)
    losses = np.zeros(n_epochs)
    n_step = 0
    for epoch in range(n_epochs):
        for batch in _batches(len(rows), batch_size, rng):
            loss, gradient = reconstruction_loss(parameters, sizes, rows[batch], code_noise[batch])
            n_step += 1
            adam_step(parameters, gradient, first_moment, second_moment, learning_rate, n_step)
            losses[epoch] += loss * len(batch)
    return losses / len(rows)


def _batches(n_rows: int, batch_size: int, rng: np.random.RandomState) -> list[np.ndarray]:
    order = rng.permutation(n_rows)
    return [order[start : start + batch_size] for start in range(0, n_rows, batch_size)]
