"""Progress bars over sweeps and bits, or over rows, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


# Download a file over HTTP: resume broken connections, refuse damaged files, say what to do about errors.

Progress = Callable[[str, int, int | None], None]


@contextmanager
def sweep_progress(n_bits: int, max_iter: int, *, shown: bool) -> Iterator[Callable[[int, float | None], None]]:
    """Yield a function (sweep, objective) to be called after each bit (objective None) and each sweep."""
    if not shown:
        yield lambda sweep, objective: None
        return
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    objective_and_time = (
        TextColumn("bits, objective {task.fields[objective]}"),
        TimeElapsedColumn(),
        TextColumn("at most"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with _bar(*objective_and_time) as progress:
        # Sweep 0, up to max_iter sweeps and the last pass; an early stop is the usual case.
        task = progress.add_task("sweep 0", total=n_bits * (max_iter + 2), objective="-")

        def report(sweep: int, objective: float | None) -> None:
            if objective is None:
                progress.update(task, advance=1, description=f"sweep {sweep}")
            else:
                progress.update(task, objective=f"{objective:.6g}")

        yield report
        progress.update(task, completed=n_bits * (max_iter + 2), description="done")


@contextmanager
def row_progress(description: str, n_rows: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function to be called with the number of rows that have been read."""
    if not shown:
        yield lambda n_read: None
        return
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    with _bar(TextColumn("rows"), TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(description, total=n_rows)
        yield lambda n_read: progress.update(task, advance=n_read)


def _bar(*columns: ProgressColumn) -> Progress:
    """Return a bar with a description, how many of all are done, and more columns."""
    # Imported here because rich takes longer to load than a small fit takes to run.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    first = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    return Progress(*first, *columns, console=Console(stderr=True))


# A progress bar on stderr for downloads.


@contextmanager
def progress_bar(shown: bool) -> Iterator[Progress | None]:
    """Yield a callback (file name, bytes so far, bytes in total or None), or None if nothing is shown."""
    if not shown:
        yield None
        return
    # Imported here because rich takes longer to load than a data set in the cache does.
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        tasks = {}

        def report(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        yield report
