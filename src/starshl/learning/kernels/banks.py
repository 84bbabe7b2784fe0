"""Kernel banks: the kernels of a fit between all its rows, stored, computed from distances, or held elsewhere.

Every bank has the methods of :class:`GramBank`; :func:`make_bank` returns the one that suits kernels and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs

from ..._common.engine import Engine, scatter
from ..._common.platform import available_bytes
from ..._common.threads import run_all, single_threaded_blas, tiles
from ..._common.validation import Rows
from ..scratch import Scratch
from .distances import DistanceTiles, PairTable
from .kernel import Kernel, check_gram, checked_block, is_built_in
from .mixture import FusedKernels
from .vector_bank import VectorBank
from .vectors import VectorKernel
from .views import by_columns, reads_columns

#: Parts of an expansion begin at multiples of this, which is one of the tiles of all banks: parts change no byte.
PART_ROWS = 1536
_TILE_ROWS = 512  # fixed, because BLAS sums depend on the shape of their blocks
_KERNEL_SHARE = 0.75  # of the free memory
_TABLE_SHARE = 0.65  # of that, for what is stored all the time; the rest is for the matrices of active rows


class GramBank:
    """The Gram matrices of all kernels, shape (n_kernels, n_rows, n_rows), stored.

    Solvers need two things of it: the weighted sum of the matrices for one bit, and the product of every
    matrix with the dual coefficients of several bits.
    """

    def __init__(self, grams: np.ndarray, n_jobs: int | None = None, scratch: Scratch | None = None):
        self.grams = grams
        self.dtype = grams.dtype
        self.n_jobs = n_jobs
        self.scratch = scratch or Scratch()
        self.n_kernels, self.n_rows = grams.shape[:2]

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given, in ``out`` if it is given."""
        weights = weights.astype(self.dtype)
        rows = np.arange(self.n_rows) if rows is None else rows
        combined = np.empty((len(rows), len(rows)), dtype=self.dtype) if out is None else out
        if len(rows) == self.n_rows:
            with single_threaded_blas():
                np.matmul(weights, self.grams.reshape(self.n_kernels, -1), out=combined.reshape(-1))
            return combined
        combined[:] = 0
        for weight, gram in zip(weights, self.grams, strict=True):
            if weight:
                combined += weight * gram[np.ix_(rows, rows)]
        return combined

    def add_to(self, matrix: np.ndarray, weights: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Add sum_m weights[m] K_m over all rows, or over the rows given, to a matrix."""
        for weight, gram in zip(weights, self.grams, strict=True):
            for tile in tiles(len(matrix), _TILE_ROWS) if weight else []:
                part = gram[tile] if rows is None else gram[np.ix_(rows[tile], rows)]
                matrix[tile] += weight.astype(matrix.dtype) * part

    def take(self, rows: np.ndarray) -> GramBank:
        """Return a bank of some of the rows."""
        return GramBank(self.grams[:, rows[:, None], rows], self.n_jobs, self.scratch)

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        used = np.flatnonzero(coefficients)
        return np.array([max(0.0, coefficients[used] @ gram[used] @ coefficients) for gram in self.grams])

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0, part: slice | None = None) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64.

        ``accuracy`` is for banks that can be faster where less will do. ``part`` asks for some of the rows: it begins
        and, unless at the last row, ends at a multiple of :data:`PART_ROWS`.
        """
        begin, end = (0, self.n_rows) if part is None else (part.start, part.stop)
        columns = np.ascontiguousarray(np.asarray(coefficients, dtype=np.float64).T)
        expansions = np.empty((self.n_kernels, end - begin, columns.shape[1]))

        def fill(rows: slice) -> None:
            for gram, expansion in zip(self.grams, expansions, strict=True):
                # In float64, because BLAS would sum a float32 matrix in float32.
                expansion[rows] = gram[begin + rows.start : begin + rows.stop].astype(np.float64) @ columns

        with single_threaded_blas():
            run_all([partial(fill, rows) for rows in tiles(end - begin, _TILE_ROWS)], self.n_jobs)
        return expansions.transpose(2, 0, 1)


def compute_grams(kernels: Sequence[Kernel], samples: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Return the Gram matrices of all kernels, shape (n_kernels, n, n), in the precision of the samples."""
    n_samples = samples.shape[0]
    dtype = samples.dtype if samples.dtype == np.float32 else np.float64
    grams = np.empty((len(kernels), n_samples, n_samples), dtype=dtype)
    if reads_columns(kernels):
        for group in by_columns(kernels):
            grams[group.positions] = compute_grams(group.kernels, group.read(samples), n_jobs)
        return grams

    def fill(rows: slice) -> None:
        table = PairTable(samples[rows], samples)
        for gram, kernel in zip(grams, kernels, strict=True):
            if isinstance(kernel, VectorKernel):
                gram[rows] = kernel.evaluate(table)

    with single_threaded_blas():
        if any(isinstance(kernel, VectorKernel) for kernel in kernels):
            run_all([partial(fill, rows) for rows in tiles(n_samples, _TILE_ROWS)], n_jobs)
        for gram, kernel in zip(grams, kernels, strict=True):
            if not isinstance(kernel, VectorKernel):
                gram[:] = checked_block(kernel, kernel.gram(samples), n_samples, n_samples)
    return grams


class ColumnBank:
    """A bank of kernels that read columns: one bank for each set of columns, with the methods of :class:`GramBank`.

    Parameters
    ----------
    kernels : fitted kernels, as many as ``banks`` have together
    rows : the rows of all columns
    banks : one for each group of kernels, in the order of :func:`by_columns`
    scratch : room for the matrices of active rows
    """

    def __init__(self, kernels: Sequence[Kernel], rows: Rows, banks: Sequence[GramBank | VectorBank], scratch: Scratch):
        self.kernels, self.rows, self.banks, self.scratch = list(kernels), rows, list(banks), scratch
        self.positions = [group.positions for group in by_columns(kernels)]
        self.n_kernels, self.n_rows = len(self.kernels), rows.shape[0]
        self.dtype = np.result_type(*(bank.dtype for bank in banks))

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given in rising order."""
        n_rows = self.n_rows if rows is None else len(rows)
        combined = np.empty((n_rows, n_rows), dtype=self.dtype) if out is None else out
        combined[:] = 0
        for bank, positions in zip(self.banks, self.positions, strict=True):
            if np.any(weights[positions]):
                bank.add_to(combined, weights[positions], rows)
        return combined

    def take(self, rows: np.ndarray) -> ColumnBank:
        """Return a bank of some of the rows."""
        return ColumnBank(self.kernels, self.rows[rows], [bank.take(rows) for bank in self.banks], self.scratch)

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        forms = np.empty(self.n_kernels)
        for bank, positions in zip(self.banks, self.positions, strict=True):
            forms[positions] = bank.quadratic_forms(coefficients)
        return forms

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0, part: slice | None = None) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64."""
        n_rows = self.n_rows if part is None else part.stop - part.start
        expansions = np.empty((self.n_kernels, n_rows, len(coefficients))).transpose(2, 0, 1)
        for bank, positions in zip(self.banks, self.positions, strict=True):
            expansions[:, positions] = bank.expand(coefficients, accuracy, part)
        return expansions


Bank: TypeAlias = GramBank | VectorBank | ColumnBank
"""What evaluates the kernels of a fit between its rows."""


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
    if FusedKernels.covers(kernels):
        if not FusedKernels.covers(kernels, samples):
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


class RemoteBank:
    """A bank that an engine holds elsewhere, with the methods of :class:`GramBank`.

    Parameters
    ----------
    engine : Engine
    handle : handle of a bank
    """

    def __init__(self, engine: Engine, handle: Any):
        self.engine, self.handle = engine, handle
        self.n_rows, self.n_kernels, self.dtype = engine.fetch(engine.submit(_shape_and_dtype, handle))
        self.scratch = Scratch()

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given in rising order."""
        combined: np.ndarray = self.engine.fetch(self.engine.submit(_combined, self.handle, weights, rows))
        if out is None:
            return combined
        out[:] = combined
        return out

    def take(self, rows: np.ndarray) -> RemoteBank:
        """Return a bank of some of the rows."""
        return RemoteBank(self.engine, self.engine.submit(_taken, self.handle, rows))

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        forms: np.ndarray = self.engine.fetch(self.engine.submit(_quadratic_forms, self.handle, coefficients))
        return forms

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64."""
        # Laid out in memory as by other banks, because sums over it depend on that in their last bits.
        expansions = np.empty((self.n_kernels, self.n_rows, len(coefficients)))
        parts = tiles(self.n_rows, PART_ROWS)
        shared = scatter(self.engine, coefficients)
        for part, found in zip(parts, self.engine.map(_expanded, parts, self.handle, shared, accuracy), strict=True):
            expansions[:, part] = found
        return expansions.transpose(2, 0, 1)

    @staticmethod
    def map(
        function: Callable[[Any, Any], Any],
        bank: Any,
        tasks: Sequence[Any],
        report: Callable[[], None] = lambda: None,
    ) -> Iterator[Any]:
        """Yield ``function(bank, task)`` for each task, computed where the bank is."""
        shared = scatter(bank.engine, function)
        for result in bank.engine.map(_called, tasks, shared, bank.handle):
            report()
            yield result


def _shape_and_dtype(bank: Any) -> tuple[int, int, np.dtype]:
    return bank.n_rows, bank.n_kernels, bank.dtype


def _combined(bank: Any, weights: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return bank.combine(weights, rows)


def _taken(bank: Any, rows: np.ndarray) -> Any:
    return bank.take(rows)


def _quadratic_forms(bank: Any, coefficients: np.ndarray) -> np.ndarray:
    return bank.quadratic_forms(coefficients)


def _expanded(part: slice, bank: Any, coefficients: np.ndarray, accuracy: float) -> np.ndarray:
    return np.ascontiguousarray(bank.expand(coefficients, accuracy, part).transpose(1, 2, 0))


def _called(task: Any, function: Callable[[Any, Any], Any], bank: Any) -> Any:
    return function(bank, task)
