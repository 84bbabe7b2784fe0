"""What a block descent gets and returns: the problem, the start, the state it works on and the solution.

Kernels, SVMs and the way to run tasks, one per bit, are passed in as objects; protocols say what is asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..._common.threads import run_all
from ..scratch import Scratch
from .svm import DualSolution

_PARTS = {
    "bank": ("n_rows", "n_kernels", "dtype", "scratch", "combine", "take", "quadratic_forms", "expand"),
    "svm": ("tol", "solve"),
}


class KernelBank(Protocol):
    """All kernels between all training rows."""

    n_rows: int
    n_kernels: int
    dtype: np.dtype
    scratch: Scratch

    def combine(self, weights: np.ndarray, rows: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_m weights[m] K_m over all rows, or over those given in rising order."""
        ...

    def take(self, rows: np.ndarray) -> KernelBank:
        """Return a bank of some of the rows."""
        ...

    def quadratic_forms(self, coefficients: np.ndarray) -> np.ndarray:
        """Return c' K_m c for every kernel, where c holds one coefficient per row."""
        ...

    def expand(self, coefficients: np.ndarray, accuracy: float = 0.0) -> np.ndarray:
        """Return K_m c for every row c of coefficients and every kernel, shape (n, n_kernels, n_rows)."""
        ...


class SvmSolver(Protocol):
    """A solver of one bit's SVM."""

    tol: float

    def solve(
        self,
        K: np.ndarray,
        y: np.ndarray,
        upper: np.ndarray,
        start: np.ndarray | None = None,
        tol: float | None = None,
    ) -> DualSolution:
        """Return the maximizer of the dual within a KKT violation of ``tol``."""
        ...


class TaskMap(Protocol):
    """Runs a function of a bank and a task for many tasks; ``report`` is called whenever one is done."""

    def __call__(
        self,
        function: Callable[[KernelBank, Any], Any],
        bank: KernelBank,
        tasks: Sequence[Any],
        report: Callable[[], None] = lambda: None,
    ) -> Iterable[Any]:
        """Return what the function returns for each task, in their order."""
        ...


def on_threads(n_jobs: int | None) -> TaskMap:
    """Return a map over tasks on the threads of this process."""

    def run(
        function: Callable[[KernelBank, Any], Any],
        bank: KernelBank,
        tasks: Sequence[Any],
        report: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        def run_one(task: Any) -> Any:
            result = function(bank, task)
            report()
            return result

        return run_all([partial(run_one, task) for task in tasks], n_jobs)

    return run


@dataclass(frozen=True, slots=True)
class Problem:
    """What stays fixed during a descent.

    ``cost`` holds c_n, ``free`` marks the rows whose assignment may change; ``late`` says that free rows enter
    after sweep 0, assigned by its result. Free rows of no cost are assigned but change nothing. ``map`` runs the tasks
    of a sweep where the bank is.
    """

    bank: KernelBank
    svm: SvmSolver
    cost: np.ndarray
    free: np.ndarray
    late: bool
    C: float
    kernel_norm: float
    constraint: str
    update_codewords: bool
    keep_clusters: bool
    max_iter: int
    tol: float
    map: TaskMap = on_threads(None)  # noqa: RUF009  (a function, which never changes)
    on_progress: Callable[[int, float | None], None] = lambda sweep, objective: None

    def upper(self, rows: np.ndarray) -> np.ndarray:
        """Return the upper bounds C c_n of the dual variables of some rows."""
        return self.C * self.cost[rows]


def require_parts(bank: KernelBank, svm: SvmSolver) -> None:
    """Refuse a bank or a solver that lacks something the descent will use."""
    for role, part in (("bank", bank), ("svm", svm)):
        missing = [name for name in _PARTS[role] if not hasattr(part, name)]
        if missing:
            raise TypeError(
                f"The {role} is a {type(part).__name__} without {', '.join(missing)}. Block descent needs "
                f"{', '.join(_PARTS[role])}; see starshl.learning.solvers.problem."
            )


@dataclass(frozen=True, slots=True)
class Start:
    """Codewords (G, n_bits), the codeword index of each row, and kernel weights (n_bits, n_kernels)."""

    codewords: np.ndarray
    assignments: np.ndarray
    weights: np.ndarray


@dataclass(slots=True)
class DescentState:
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
    def begin(cls, start: Start) -> DescentState:
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


@dataclass(frozen=True, slots=True)
class Solution:
    """The hash functions of all bits and how the descent went.

    ``coefficients`` (n_bits, n_rows) and ``weights`` belong together; ``scores`` (n_rows, n_bits) are their values on
    the training rows. Histories hold one entry after sweep 0, each sweep and each last pass.
    """

    codewords: np.ndarray
    assignments: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    penalty: np.ndarray
    violation: np.ndarray
    is_constant: np.ndarray
    objective: np.ndarray
    surrogate: np.ndarray
    distortion: np.ndarray
    n_iter: int
    n_moved: int
    n_flipped: int
    n_dropped: int
    converged: bool
