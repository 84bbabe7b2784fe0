"""The mutable working state of a descent; nobody outside the descent sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from .solution import Solution, Start

__all__ = ["State"]


@dataclass(slots=True)
class State:
    """What a descent changes; arrays run over bits first, then kernels or rows (scores: rows first).

    ``coefficients`` and ``used_weights`` belong together and define the hash functions; ``weights`` are the
    kernel weights that the next SVM will use, and ``penalty`` is the regularizer at these.
    """

    codewords: np.ndarray
    assignments: np.ndarray
    weights: np.ndarray
    used_weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    penalty: np.ndarray
    violation: np.ndarray
    is_constant: np.ndarray
    objective: list[float] = field(default_factory=list)
    surrogate: list[float] = field(default_factory=list)
    distortion: list[float] = field(default_factory=list)
    n_iter: int = 0
    n_moved: int = 0
    n_flipped: int = 0
    n_dropped: int = 0
    converged: bool = False

    @classmethod
    def begin(cls, start: Start) -> State:
        """Begin with hash functions that are zero and infinitely expensive: any SVM improves on them."""
        n_bits, n_rows = start.codewords.shape[1], len(start.assignments)
        return cls(
            codewords=start.codewords.copy(),
            assignments=start.assignments.copy(),
            weights=start.weights.copy(),
            used_weights=start.weights.copy(),
            coefficients=np.zeros((n_bits, n_rows)),
            intercept=np.zeros(n_bits),
            scores=np.zeros((n_rows, n_bits)),
            penalty=np.full(n_bits, np.inf),
            violation=np.zeros(n_bits),
            is_constant=np.zeros(n_bits, dtype=bool),
        )

    def solution(self) -> Solution:
        """Return what has been reached."""
        values = {each.name: getattr(self, each.name) for each in fields(Solution)}
        histories = ("objective", "surrogate", "distortion")
        return Solution(**values | {name: np.array(values[name]) for name in histories})
