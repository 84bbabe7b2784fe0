"""How SDH and FSDH tie codes to classes: a loss, its best matrix W, and its best codes H.

Y is (n_samples, n_classes) one-hot, H is (n_samples, n_bits) of signs, both float64.
"""

from __future__ import annotations

import numpy as np

from .._threads import single_threaded_blas
from ..codebooks import random_codewords
from ..codes import signs_of
from ..solvers.ridge import ridge_solve


class ClassesFromCodes:
    r"""SDH: :math:`\|Y - H W\|^2`, classes predicted linearly from codes."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter

    def start(self, classes: np.ndarray, n_classes: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        return signs_of(rng.standard_normal((len(classes), n_bits))).astype(np.float64)

    def solve(self, Y: np.ndarray, H: np.ndarray, penalty: float) -> np.ndarray:
        return ridge_solve(H, Y, penalty)

    def loss(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray) -> float:
        return float(np.sum((Y - H @ W) ** 2))

    def best_codes(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray, pull: np.ndarray) -> np.ndarray:
        r"""Minimize :math:`\|Y - H W\|^2 - 2\,\mathrm{tr}(H^\top \mathrm{pull})` one column at a time.

        Column k is :math:`\mathrm{sign}(q_k - H_{-k} W_{-k} w_k)` with :math:`Q = Y W^\top + \mathrm{pull}`
        (Shen et al. 2015); an entry of zero keeps its sign, so the sweeps end.
        """
        H = H.copy()
        with single_threaded_blas():
            Q, interaction = Y @ W.T + pull, W @ W.T
            np.fill_diagonal(interaction, 0.0)
            for _ in range(self.max_iter):
                before = H.copy()
                for k in range(H.shape[1]):
                    argument = Q[:, k] - H @ interaction[:, k]
                    H[:, k] = np.where(argument == 0, H[:, k], signs_of(argument))
                if np.array_equal(H, before):
                    break
        return H


class CodesFromClasses:
    r"""FSDH: :math:`\|H - Y W\|^2`, codes predicted from classes."""

    def start(self, classes: np.ndarray, n_classes: int, n_bits: int, rng: np.random.RandomState) -> np.ndarray:
        return random_codewords(n_classes, n_bits, rng)[classes].astype(np.float64)

    def solve(self, Y: np.ndarray, H: np.ndarray, penalty: float) -> np.ndarray:
        return ridge_solve(Y, H, penalty)

    def loss(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray) -> float:
        return float(np.sum((H - Y @ W) ** 2))

    def best_codes(self, Y: np.ndarray, H: np.ndarray, W: np.ndarray, pull: np.ndarray) -> np.ndarray:
        r"""Return :math:`\mathrm{sign}(Y W + \mathrm{pull})`, the exact minimizer."""
        with single_threaded_blas():
            return signs_of(Y @ W + pull).astype(np.float64)
