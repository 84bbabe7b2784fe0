"""Semantic hashing: the binary bottleneck of a deep autoencoder (Salakhutdinov and Hinton 2009)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_random_state

from .._threads import single_threaded_blas
from .._types import LabelsLike, SamplesLike, Seed
from .._validation import check_choice, check_integer, check_number, check_rows
from ..base import BaseHasher, all_or_nothing
from ..facts import Facts
from ..linalg import fill_by_tiles
from ._autoencoder import encode_rows, finetune, layer_views, n_parameters, train_rbm, unroll

__all__ = ["SemanticHashing"]


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
    >>> from starshl.baselines import SemanticHashing
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
        pretrain_max_iter: int | str = "auto",
        max_iter: int | str = "auto",
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        regularization: float = 2e-4,
        finetune_learning_rate: float = 1e-3,
        batch_size: int = 100,
        noise_variance: float = 16.0,
        threshold: str = "half",
        scale: str = "minmax",
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
