"""How the tasks of a descent, one per bit, are run: on threads here, or elsewhere, wherever the kernels are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from .._threads import run_all
from .protocols import KernelBank

__all__ = ["TaskMap", "on_threads"]


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
