"""Tables and lines of means over runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .document import Series, Table, counted, plus_minus
from .statistics import Summary, best_of, means_of, shared_runs, summarize

__all__ = ["Runs", "line_over", "table_of_means"]

Runs = Mapping[int, float]


def line_over(name: str, points: Iterable[tuple[float, Runs]], *, emphasized: bool = False) -> Series | None:
    """Return a line of means with deviations from pairs of x and run -> value; None if there is no value."""
    pairs = [(x, summarize(values.values())) for x, values in points]
    known = [(x, summary) for x, summary in pairs if summary is not None]
    if not known:
        return None
    return Series(
        name,
        tuple(x for x, _ in known),
        tuple(summary.mean for _, summary in known),
        tuple(summary.deviation for _, summary in known),
        emphasized,
    )


def table_of_means(
    caption: str,
    columns: tuple[str, ...],
    cells: Mapping[str, Sequence[Runs]],
    *,
    skip: tuple[str, ...] = (),
    notes: Mapping[str, str] | None = None,
    n_runs: int | None = None,
) -> Table:
    """Return a table of means and deviations.

    Bold marks the best mean over the runs that all rows of a column share, and every mean that is printed alike. A cell
    with fewer runs than others of its column, or than the caption says, says how many it has.

    Parameters
    ----------
    caption : str
    columns : tuple of str
        The heading of the names, of the notes if there are any, and of each column of means.
    cells : mapping of a row's name to run -> value, column by column
    skip : tuple of str
        Rows that are never bold.
    notes : mapping of a row's name to a text, default=None
        Shown as the second column.
    n_runs : int, default=None
        The number of runs that the caption gives; None if it gives none.
    """
    first = 1 if notes is None else 2
    n_columns = len(columns) - first
    summaries = {name: [summarize(runs.values()) for runs in row] for name, row in cells.items()}
    by_column = [[row[place] for row in summaries.values()] for place in range(n_columns)]
    most = [n_runs or max((found.n for found in column if found is not None), default=0) for column in by_column]
    rows = []
    for name, row in summaries.items():
        note = () if notes is None else (notes.get(name, "-"),)
        rows.append((name, *note, *map(_cell, row, most)))
    strong = set()
    for place in range(n_columns):
        best = _best_of({name: row[place] for name, row in cells.items() if name not in skip})
        strong |= {(number, place + first) for number, name in enumerate(cells) if name in best}
    return Table(caption, columns, tuple(rows), frozenset(strong))


def _cell(summary: Summary | None, most_runs: int, digits: int = 3) -> str:
    if summary is None or summary.n == most_runs:
        return plus_minus(summary, digits)
    return f"{plus_minus(summary, digits)} ({counted(summary.n, 'run')})"


def _best_of(column: Mapping[str, Runs]) -> set[str]:
    """Return the names with the best mean over shared runs; none if there is no such run, or only one name."""
    means = means_of(shared_runs(column))
    return best_of(means) if len(means) > 1 else set()
