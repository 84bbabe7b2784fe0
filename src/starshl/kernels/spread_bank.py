"""SpreadBank: a bank that lives where an engine runs its tasks, and is asked from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._engine import Engine, place_value
from .._memory import Scratch
from .._threads import tiles

__all__ = ["PART_ROWS", "SpreadBank"]

PART_ROWS = 1536  # a multiple of the tiles of all banks, so that parts change no byte


class SpreadBank:
    """The kernels between all training rows; see :class:`starshl.kernels.bank.GramBank` for what solvers ask of it.

    Parameters
    ----------
    engine : Engine
    placed : handle of a bank
    """

    def __init__(self, engine: Engine, placed: Any):
        self.engine, self.placed = engine, placed
        self.n_rows, self.n_kernels, self.dtype = engine.fetch(engine.place(_facts, placed))
        self.scratch = Scratch()

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over the rows given in rising order."""
        combined: np.ndarray = self.engine.fetch(self.engine.place(_combined, self.placed, weights, rows))
        if out is None:
            return combined
        out[:] = combined
        return out

    def take(self, rows: np.ndarray) -> SpreadBank:
        """Return a bank of some of the rows."""
        return SpreadBank(self.engine, self.engine.place(_taken, self.placed, rows))

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        forms: np.ndarray = self.engine.fetch(self.engine.place(_quadratic_forms, self.placed, coefficients))
        return forms

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0) -> np.ndarray:
        """Return K_m @ c for every kernel and every row c of coefficients, (n, n_kernels, n_rows), in float64."""
        # Laid out in memory as by other banks, because sums over it depend on that in their last bits.
        expansions = np.empty((self.n_kernels, self.n_rows, len(coefficients)))
        parts = tiles(self.n_rows, PART_ROWS)
        shared = place_value(self.engine, coefficients)
        for part, found in zip(parts, self.engine.map(_expanded, parts, self.placed, shared, accuracy), strict=True):
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
        shared = place_value(bank.engine, function)
        for result in bank.engine.map(_called, tasks, shared, bank.placed):
            report()
            yield result


def _facts(bank: Any) -> tuple[int, int, np.dtype]:
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
