"""Expansion: the functions of all bits, or of all classes, as kernel expansions over their support rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..._common.result_cache import cached
from ..._common.validation import Rows
from ...learning.kernels.expansion import BitExpansion, MixtureExpansion
from ...learning.kernels.kernel import Kernel
from .samples import Samples


@dataclass(frozen=True)
class Expansion:
    r"""The functions :math:`f_b(x) = \sum_m \theta_{bm} \sum_s \eta_{bs} k_m(x_s, x) + \beta_b`.

    Parameters
    ----------
    samples_of : the kind of samples that the functions take
    kernels : fitted kernels, none if they are precomputed
    weights : array of shape (n_bits, n_kernels), or (n_kernels,) if all functions share them
    support : array of shape (n_support,), where the support rows stand among the training rows
    support_samples : what :meth:`Samples.support_samples` returned for these rows
    coefficients : array of shape (n_bits, n_support)
    intercept : array of shape (n_bits,)
    """

    samples_of: type[Samples]
    kernels: Sequence[Kernel]
    weights: np.ndarray
    support: np.ndarray
    support_samples: Rows
    coefficients: np.ndarray
    intercept: np.ndarray

    def scores(self, samples: Samples) -> np.ndarray:
        """Return f_b(x), shape (n_samples, n_bits)."""
        return cached("expansion", (samples.kind, samples.values, *self._functions), partial(self._compute, samples))

    @cached_property
    def over_rows(self) -> BitExpansion | MixtureExpansion:
        """The functions of samples other than precomputed kernels, without their bias."""
        expansion = MixtureExpansion if self.weights.ndim == 1 else BitExpansion
        return expansion(self.kernels, self.support_samples, self.weights, self.coefficients)

    def _compute(self, samples: Samples) -> np.ndarray:
        scores = samples.expand(self)
        return scores + self.intercept.astype(scores.dtype)

    @property
    def _functions(self) -> tuple[object, ...]:
        """Everything that scores depend on, except the samples."""
        return self.kernels, self.weights, self.support, self.support_samples, self.coefficients, self.intercept

    @property
    def mean_weights(self) -> np.ndarray:
        """The kernel weights of the mean function, (n_kernels,)."""
        return self.weights if self.weights.ndim == 1 else self.weights.mean(axis=0)
