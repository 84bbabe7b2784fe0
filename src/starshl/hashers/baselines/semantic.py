"""Semantic hashing: the binary bottleneck of a deep autoencoder (Salakhutdinov and Hinton 2009)."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
from numba import njit
from scipy.special import expit
from sklearn.utils.validation import check_random_state

from ..._common.labels import LabelsLike
from ..._common.threads import single_threaded_blas
from ..._common.validation import SamplesLike, Seed, check_choice, check_integer, check_number, check_rows
from ...learning.linalg import fill_by_tiles
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts


class SemanticHashing(BaseHasher):
    r"""Hash by the code layer of an autoencoder that starts as a stack of Boltzmann machines.

    Each layer of n_features - ``hidden_sizes`` - n_bits is first fitted as a restricted Boltzmann machine
    by contrastive divergence, bottom up. The stack is then unrolled into an autoencoder and fine-tuned to
    reconstruct its input under cross-entropy, with Gaussian noise on the input of the code units. The
    noise of a row is drawn once: the only way to get a message past it is to make the code units nearly
    binary. Codes are read without noise, bit b being [activation >= 1/2].

    Differences from the paper: fine-tuning uses Adam instead of conjugate gradients, visible units are
    probabilities in [0, 1] (the paper's word counts use a constrained Poisson layer), and large training
    sets get fewer epochs than its 50 + 50, so that 10,000 rows of 784 features take less than a minute.
    The network is always trained in float32.

    Parameters
    ----------
    n_bits : int, default=32
    hidden_sizes : tuple of int, default=(500, 500)
    pretrain_max_iter : int or "auto", default="auto"
        Passes over the rows for each Boltzmann machine; "auto" is the paper's 50, but at most 100,000 row
        visits and at least 5 passes.
    max_iter : int or "auto", default="auto"
        Passes over the rows for the autoencoder; "auto" is 50, but at most 150,000 row visits and at least
        5 passes. 0 leaves the stack as it was pre-trained.
    learning_rate : float, default=0.1
        Of the Boltzmann machines.
    momentum : float, default=0.9
    regularization : float, default=2e-4
    finetune_learning_rate : float, default=1e-3
    batch_size : int, default=100
    noise_variance : float, default=16.0
        Of the noise on the code units while fine-tuning.
    threshold : {"half", "median"}, default="half"
        Cut each code unit at activation 1/2 or at its median over the training rows (balanced bits).
    scale : {"minmax", "none"}, default="minmax"
        Map each feature from its range over the training rows to [0, 1] (new rows are clipped to it), or
        take features that are in [0, 1] as they are.
    n_jobs : int, default=None
        Number of threads; None means one, -1 means all. Codes do not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    layer_sizes_ : tuple of int
        Of the encoder: n_features, hidden sizes, n_bits.
    encoder_ : array
        All weights and biases of the encoder, layer after layer.
    offset_, factor_ : arrays of shape (n_features,)
        A row enters the network as (x - offset_) * factor_, clipped to [0, 1].
    threshold_ : array of shape (n_bits,)
        Pre-activation at which a code unit turns to +1.
    pretrain_errors_ : array of shape (n_layers, pretrain_max_iter)
        Mean squared reconstruction error of each machine while it was fitted.
    n_iter_ : int
        Epochs of fine-tuning.
    objective_history_ : array of shape (n_iter_,)
        Mean noisy cross-entropy of each epoch; falls on the whole, but a stochastic method may rise.
    bit_balance_ : array of shape (n_bits,)
        Share of training rows with +1; near 0 or 1 means a dead unit.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from starshl.hashers.baselines import SemanticHashing
    >>> from starshl.evaluation import precision_at
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SemanticHashing(8, hidden_sizes=(50,), max_iter=5, random_state=0).fit(X[:1000])
    >>> items, queries = hasher.encode_database(X[:1000]), hasher.encode(X[1000:])
    >>> precision_at(queries, items, y[1000:], y[:1000]) > 0.7  # right digits among the ten nearest
    True
    >>> hasher.layer_sizes_
    (64, 50, 8)
    """

    facts = Facts(
        paper="Salakhutdinov, Hinton: Semantic Hashing",
        year=2009,
        labels="ignored",
        cost="epochs x n x network weights",
    )

    def __init__(
        self,
        n_bits: int = 32,
        *,
        hidden_sizes: tuple[int, ...] = (500, 500),
        pretrain_max_iter: int | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        regularization: float = 2e-4,
        finetune_learning_rate: float = 1e-3,
        batch_size: int = 100,
        noise_variance: float = 16.0,
        threshold: Literal["half", "median"] = "half",
        scale: Literal["minmax", "none"] = "minmax",
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_bits = n_bits
        self.hidden_sizes = hidden_sizes
        self.pretrain_max_iter = pretrain_max_iter
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.regularization = regularization
        self.finetune_learning_rate = finetune_learning_rate
        self.batch_size = batch_size
        self.noise_variance = noise_variance
        self.threshold = threshold
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: SamplesLike, y: LabelsLike = None) -> SemanticHashing:
        """Pre-train the stack and fine-tune the autoencoder; y is ignored."""
        self._check_settings()
        X = check_rows(self, X, fitting=True)
        rng = check_random_state(self.random_state)
        self._learn_range(X)
        rows = self._visible(X).astype(np.float32)
        with single_threaded_blas():
            sizes, parameters = unroll(self._pretrain(rows, rng))
            noise = np.sqrt(self.noise_variance) * rng.standard_normal((len(rows), self.n_bits))
            self.objective_history_ = finetune(
                parameters,
                sizes,
                rows,
                noise.astype(np.float32),
                rng,
                n_epochs=_n_epochs(self.max_iter, len(rows), row_visits=150_000),
                batch_size=self.batch_size,
                learning_rate=self.finetune_learning_rate,
            )
            self.n_iter_ = len(self.objective_history_)
            self.layer_sizes_ = sizes[: len(sizes) // 2 + 1]
            self.encoder_ = parameters[: n_parameters(self.layer_sizes_)].astype(X.dtype)
            self._set_threshold(rows.astype(X.dtype))
        return self

    def _check_settings(self) -> None:
        check_integer(self.n_bits, "n_bits", low=1)
        for size in self.hidden_sizes:
            check_integer(size, "Each entry of hidden_sizes", low=1)
        for name in ("pretrain_max_iter", "max_iter"):
            if getattr(self, name) != "auto":
                check_integer(getattr(self, name), name, low=0)
        check_integer(self.batch_size, "batch_size", low=1)
        for name in ("learning_rate", "finetune_learning_rate"):
            check_number(getattr(self, name), name, low=0, strict=True)
        for name in ("momentum", "regularization", "noise_variance"):
            check_number(getattr(self, name), name, low=0)
        if self.momentum >= 1:
            raise ValueError(f"momentum is {self.momentum}; it must be below 1, or the steps never fade.")
        check_choice(self.threshold, "threshold", ("half", "median"))
        check_choice(self.scale, "scale", ("minmax", "none"))

    def _learn_range(self, X: np.ndarray) -> None:
        low, high = X.min(axis=0), X.max(axis=0)
        if self.scale == "minmax":
            width = high - low
            self.offset_ = low
            self.factor_ = (1.0 / np.where(width > 0, width, 1.0)).astype(X.dtype)
            return
        if low.min() < 0 or high.max() > 1:
            raise ValueError(
                f"X has entries from {low.min():g} to {high.max():g}; the visible units are probabilities "
                "in [0, 1]. Scale the features or use scale='minmax'."
            )
        self.offset_, self.factor_ = np.zeros_like(low), np.ones_like(low)

    def _visible(self, X: np.ndarray) -> np.ndarray:
        return np.clip((X - self.offset_) * self.factor_, 0.0, 1.0)

    def _pretrain(
        self, rows: np.ndarray, rng: np.random.RandomState
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        machines, errors = [], []
        for size in (*self.hidden_sizes, self.n_bits):
            weights, visible, hidden, history = train_rbm(
                rows,
                size,
                rng,
                n_epochs=_n_epochs(self.pretrain_max_iter, len(rows), row_visits=100_000),
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                momentum=self.momentum,
                weight_decay=self.regularization,
            )
            machines.append((weights, visible, hidden))
            errors.append(history)
            rows = expit(encode_rows(rows, [(weights, hidden)]))
        self.pretrain_errors_ = np.array(errors)
        return machines

    def _set_threshold(self, rows: np.ndarray) -> None:
        scores = encode_rows(rows, layer_views(self.encoder_, self.layer_sizes_))
        self.threshold_ = np.zeros(self.n_bits, scores.dtype)
        if self.threshold == "median":
            self.threshold_ = np.median(scores, axis=0)
        self.bit_balance_ = (scores >= self.threshold_).mean(axis=0)

    def _scores(self, X: SamplesLike) -> np.ndarray:
        """Return the noise-free pre-activations of the code units minus their thresholds."""
        X = check_rows(self, X, fitting=False)
        layers = layer_views(self.encoder_, self.layer_sizes_)

        def of(tile: slice) -> np.ndarray:
            return encode_rows(self._visible(X[tile]), layers) - self.threshold_

        return fill_by_tiles(len(X), self.layer_sizes_[-1], X.dtype, of)


def _n_epochs(setting: int | str, n_rows: int, *, row_visits: int) -> int:
    return min(max(row_visits // n_rows, 5), 50) if setting == "auto" else int(setting)


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


@njit(cache=True, nogil=True)
def adam_step(
    parameters: np.ndarray,
    gradient: np.ndarray,
    first_moment: np.ndarray,
    second_moment: np.ndarray,
    step_size: float,
    n_step: int,
) -> None:
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


def _batches(n_rows: int, batch_size: int, rng: np.random.RandomState) -> list[np.ndarray]:
    order = rng.permutation(n_rows)
    return [order[start : start + batch_size] for start in range(0, n_rows, batch_size)]
