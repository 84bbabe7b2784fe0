"""Contributions: how much each kernel, view and training row adds to the functions of a hasher at one sample."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Self

import numpy as np

from ..._common.validation import Rows
from ...learning.kernels.expansion import kernel_values
from ...learning.kernels.kernel import Kernel
from ...learning.kernels.views import OnColumns
from .expansion import Expansion


@dataclass(frozen=True, slots=True)
class Contributions:
    r"""The parts of the functions :math:`f_b(x) = \sum_m \theta_{bm} \sum_s \eta_{bs} k_m(x_s, x) + \beta_b` at one x.

    Attributes
    ----------
    by_kernel : array of shape (n_functions, n_kernels), :math:`\theta_{bm} \sum_s \eta_{bs} k_m(x_s, x)`
    by_row : array of shape (n_functions, n_support), :math:`\eta_{bs} \sum_m \theta_{bm} k_m(x_s, x)`
    kernels : the name of each kernel
    views : the view that each kernel reads, empty text if it reads all columns
    rows : where the support rows stand among the training rows
    of_classes : whether the functions are those of classes, not of bits
    """

    by_kernel: np.ndarray
    by_row: np.ndarray
    kernels: tuple[str, ...]
    views: tuple[str, ...]
    rows: np.ndarray
    of_classes: bool

    @classmethod
    def of(cls, expansion: Expansion, sample: Rows, *, of_classes: bool) -> Self:
        """Return the parts of kernel expansions at the one sample."""
        values = kernel_values(expansion.kernels, sample, expansion.support_samples)[:, 0].astype(np.float64)
        eta = np.asarray(expansion.coefficients, np.float64)
        theta = np.broadcast_to(np.atleast_2d(expansion.weights), (len(eta), len(values)))
        names = tuple(map(_name, expansion.kernels))
        views = tuple(kernel.view if isinstance(kernel, OnColumns) else "" for kernel in expansion.kernels)
        return cls(theta * (eta @ values.T), eta * (theta @ values), names, views, expansion.support, of_classes)

    def top_kernels(self, direction: np.ndarray, n: int) -> list[tuple[str, float]]:
        """Return the kernels with the largest parts of ``direction @ f``, largest first."""
        parts = direction @ self.by_kernel
        return [(self.kernels[m], float(parts[m])) for m in np.argsort(-parts, kind="stable")[:n]]

    def top_views(self, direction: np.ndarray, n: int) -> list[tuple[str, float]]:
        """Return the views with the largest parts of ``direction @ f``, largest first; none without views."""
        parts: dict[str, float] = {}
        for view, part in zip(self.views, (direction @ self.by_kernel).tolist(), strict=True):
            if view:
                parts[view] = parts.get(view, 0.0) + part
        return sorted(parts.items(), key=lambda item: -item[1])[:n]

    def top_rows(self, direction: np.ndarray, n: int) -> list[tuple[int, float]]:
        """Return the training rows with the largest parts of ``direction @ f``, largest first."""
        parts = direction @ self.by_row
        return [(int(self.rows[s]), float(parts[s])) for s in np.argsort(-parts, kind="stable")[:n]]


def _name(kernel: Kernel) -> str:
    """Return a kernel as one would write it, without arrays; one of a view after the name of the view."""
    if isinstance(kernel, OnColumns):
        return f"{kernel.view}: {_name(kernel.kernel)}" if kernel.view else _name(kernel.kernel)
    if not is_dataclass(kernel):
        return type(kernel).__name__
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
    numbers = [f"{name}={value:.3g}" for name, value in values.items() if isinstance(value, int | float)]
    return f"{type(kernel).__name__}({', '.join(numbers)})"
