"""A progress bar on stderr for downloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .download import Progress

__all__ = ["progress_bar"]


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
