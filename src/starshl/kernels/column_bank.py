"""ColumnBank: kernels that read different columns, one bank for each set of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._memory import Scratch
from .._types import Rows
from .bank import GramBank
from .base import Kernel
from .columns import by_columns
from .vector_bank import VectorBank

__all__ = ["ColumnBank"]


class ColumnBank:
    """The kernels between all training rows; see :class:`starshl.kernels.bank.GramBank` for what solvers ask of it.

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
