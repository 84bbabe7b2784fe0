"""Which bank serves a set of kernels, and how much memory it may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from joblib import effective_n_jobs

from .._memory import Scratch, available_bytes
from .bank import GramBank, compute_grams
from .base import Kernel
from .choice import check_gram, is_built_in
from .column_bank import ColumnBank
from .columns import by_columns, reads_columns
from .distances import DistanceTiles
from .mix import KernelMix
from .vector_bank import VectorBank

__all__ = ["Bank", "MemoryPlan", "make_bank"]

Bank: TypeAlias = GramBank | VectorBank | ColumnBank
"""What evaluates the kernels of a fit between its rows."""

_KERNEL_SHARE = 0.75  # of the free memory
_TABLE_SHARE = 0.65  # of that, for what is stored all the time; the rest is for the matrices of active rows


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How kernels are computed: GiB at most (None: what is free), threads, and whether float64 is needed.

    Distances between rows are stored where they fit, unless kernels are summed only once.
    """

    max_memory: float | None = None
    n_jobs: int | None = None
    in_float64: bool = False
    stores_distances: bool = True

    @property
    def budget(self) -> float:
        """Bytes that kernels may take."""
        if self.max_memory is not None:
            return self.max_memory * 2**30
        available = available_bytes()
        return np.inf if available is None else _KERNEL_SHARE * available


def make_bank(kernels: Sequence[Kernel], samples: np.ndarray, plan: MemoryPlan) -> Bank:
    """Return a bank of fitted kernels: one for each set of columns that kernels read, if they read columns."""
    if not reads_columns(kernels):
        return _make_bank(kernels, samples, plan)
    groups, budget = by_columns(kernels), plan.budget
    share = replace(plan, max_memory=budget / len(groups) / 2**30)
    banks = [_make_bank(group.kernels, group.read(samples), share) for group in groups]
    return ColumnBank(kernels, samples, banks, _scratch(budget, plan))


def _scratch(budget: float, plan: MemoryPlan) -> Scratch:
    return Scratch((1.0 - _TABLE_SHARE) * budget / effective_n_jobs(plan.n_jobs))


def _make_bank(kernels: Sequence[Kernel], samples: np.ndarray, plan: MemoryPlan) -> GramBank | VectorBank:
    """Return a bank of fitted kernels: computed from distances where the loops can do it, stored otherwise.

    float32 rows whose lengths differ too widely for the loops are taken in float64.
    """
    if samples.dtype == np.float32 and plan.in_float64:
        samples = samples.astype(np.float64)
    budget = plan.budget
    scratch = _scratch(budget, plan)
    if KernelMix.covers(kernels):
        if not KernelMix.covers(kernels, samples):
            samples = samples.astype(np.float64)
        fits = DistanceTiles.stored_bytes(samples.shape[0], samples.dtype.itemsize) <= _TABLE_SHARE * budget
        return VectorBank(kernels, samples, plan.n_jobs, scratch, stores_distances=fits and plan.stores_distances)
    _require_grams(samples, len(kernels), _TABLE_SHARE * budget)
    grams = compute_grams(kernels, samples, plan.n_jobs)
    rng = np.random.RandomState(0)  # a separate stream, so that the check never changes what is learned
    for position, (kernel, gram) in enumerate(zip(kernels, grams, strict=True)):
        if not is_built_in(kernel):
            check_gram(gram, f"The Gram matrix of kernels[{position}]", rng)
    return GramBank(grams, plan.n_jobs, scratch)


def _require_grams(samples: np.ndarray, n_kernels: int, budget: float) -> None:
    """Refuse rows whose stored kernel matrices do not fit into memory."""
    n_rows = samples.shape[0]
    n_bytes = n_kernels * n_rows**2 * (4 if samples.dtype == np.float32 else 8)
    if n_bytes > budget:
        raise MemoryError(
            f"Fitting {n_rows:,} rows stores {n_kernels} kernel matrices of {n_bytes / 2**30:.2g} GiB together, and "
            f"max_memory leaves {budget / 2**30:.2g} GiB to them. Use fewer rows, fewer kernels, a larger max_memory "
            "or, for vectors, the built-in kernels, which need not be stored."
        )
