"""Progress on standard error: bars over sweeps, rows, runs and downloads, and a sign of life where there is no measure.

Each is a context manager that yields the function to report to; where nothing is to be shown, that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

DownloadProgress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes so far, and all of them if their number is known."""
_shown: ContextVar[bool] = ContextVar("shown", default=False)


@contextmanager
def sweep_progress(n_bits: int, max_iter: int, *, shown: bool) -> Iterator[Callable[[int, float | None], None]]:
    """Yield a function (sweep, objective) to be called after each bit (objective None) and each sweep."""
    if not shown:
        yield lambda sweep, objective: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        MofNCompleteColumn(),
        TextColumn("bits, objective {task.fields[objective]}"),
        TimeElapsedColumn(),
        TextColumn("at most"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with _bar(*columns) as bar:
        # Sweep 0, up to max_iter sweeps and the last pass; an early stop is the usual case.
        n_steps = n_bits * (max_iter + 2)
        task = bar.add_task("sweep 0", total=n_steps, objective="-")

        def report(sweep: int, objective: float | None) -> None:
            if objective is None:
                bar.update(task, advance=1, description=f"sweep {sweep}")
            else:
                bar.update(task, objective=f"{objective:.6g}")

        yield report
        bar.update(task, completed=n_steps, description="done")


@contextmanager
def showing_progress(shown: bool) -> Iterator[None]:
    """Show bars over rows inside this context, where nobody else says whether to show them."""
    before = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(before)


@contextmanager
def row_progress(description: str, n_rows: int, *, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to be called with the number of rows that have been read; None is what the context says."""
    if not (_shown.get() if shown is None else shown):
        yield lambda n_read: None
        return
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    with _bar(MofNCompleteColumn(), TextColumn("rows"), TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(description, total=n_rows)
        yield lambda n_read: bar.update(task, advance=n_read)


@contextmanager
def run_progress() -> Iterator[Callable[[int, int, str, str], None]]:
    """Yield a function (done, of how many, title of the last one, time left) for runs of very different lengths."""
    from rich.progress import MofNCompleteColumn, TextColumn

    with _bar(MofNCompleteColumn(), TextColumn("{task.fields[left]} left: {task.fields[title]}")) as bar:
        task = bar.add_task("", total=None, left="?", title="starting")
        yield lambda n_done, n_total, title, left: bar.update(
            task, completed=n_done, total=n_total, title=title, left=left
        )


@contextmanager
def download_progress(shown: bool) -> Iterator[DownloadProgress | None]:
    """Yield a function to be called with each piece of a file that has arrived, or None if nothing is shown."""
    if not shown:
        yield None
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn

    with _bar(DownloadColumn(), TimeRemainingColumn()) as bar:
        tasks = {}

        def report(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        yield report


@contextmanager
def status(what: str, *, shown: bool) -> Iterator[None]:
    """Show a sign of life, and for how long, during work of unknown length."""
    if not shown:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), SpinnerColumn(finished_text="done"), TimeElapsedColumn()
    with Progress(*columns, console=_console()) as steps:
        task = steps.add_task(what, total=None)
        yield
        steps.update(task, total=1, completed=1)


def _bar(*columns: ProgressColumn) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=_console())


def _console() -> Console:
    # Here as above, rich is imported on use: it takes longer to load than a small fit takes to run.
    from rich.console import Console

    return Console(stderr=True)
