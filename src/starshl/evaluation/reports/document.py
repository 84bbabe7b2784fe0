"""A report before it is written: sections of text, tables, charts and pictures, the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..._common.words import counted
from .statistics import Paired, Summary, best_of, means_of, shared_runs, summarize

# Values by run.
Runs: TypeAlias = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or a list if there are several lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under named columns.

    ``strong`` lists cells (row, column) to print in bold. ``tones`` maps texts of cells to "yes", "no" or "open", which
    colors them; a table with tones is never collapsed.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    n_text_columns: int = 1
    tones: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart.

    ``deviations`` holds that of each point, None where it is not known. An ``emphasized`` line is bold and on top.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    deviations: tuple[float | None, ...] = ()
    emphasized: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a common axis; ``ticks`` are the values of x that are marked.

    With ``tick_names`` the ticks are categories, and no line joins their points. ``band`` is for lines whose x is also
    measured: the deviation is drawn as an area, and lines are not moved sideways. In a chart of differences, ``zero``
    says what they are differences from; all such charts of one section have the same y axis. With ``log_y``, all y are
    positive and have no deviations.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[float, ...] = ()
    log_x: bool = False
    log_y: bool = False
    tick_names: tuple[str, ...] = ()
    band: bool = False
    zero: str = ""

    @property
    def has_lines(self) -> bool:
        """Whether lines join the points; categories have no order."""
        return not self.tick_names

    @property
    def is_moved(self) -> bool:
        """Whether points are moved a little sideways, so that bars do not cover each other."""
        has_bars = any(deviation for series in self.series for deviation in series.deviations)
        return not self.band and (has_bars or not self.has_lines)


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """A query and what each method retrieves; images are uint8 arrays of shape (height, width).

    A row has a name, its images, and whether each is right, None where that is not known.
    """

    caption: str
    query: np.ndarray
    rows: tuple[tuple[str, tuple[np.ndarray, ...], tuple[bool | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Lists:
    """A query and what each method retrieves, as text; rows are as in :class:`Pictures`."""

    caption: str
    query: str
    rows: tuple[tuple[str, tuple[str, ...], tuple[bool | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Links:
    """Other pages, as pairs of a text and an address."""

    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands to type, each with what it does."""

    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing in a separate file, by its address from the page."""

    caption: str
    address: str


Block: TypeAlias = Text | Table | Chart | Pictures | Lists | Links | Commands | Drawing


@dataclass(slots=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    anchor: str
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """The whole report; ``styles`` fixes the numbers of looks (see charts) for some names of lines."""

    title: str
    subtitle: str
    sections: list[Section] = field(default_factory=list)
    styles: dict[str, int] = field(default_factory=dict)


def plus_minus(summary: Summary | None, digits: int = 3) -> str:
    """Write a mean and its deviation.

    Examples
    --------
    >>> plus_minus(Summary(0.9312, 0.0041, 5)), plus_minus(Summary(0.9312, None, 1)), plus_minus(None)
    ('0.931 ± 0.004', '0.931', '-')
    """
    if summary is None:
        return "-"
    mean = f"{summary.mean:,.{digits}f}"
    return mean if summary.deviation is None else f"{mean} ± {summary.deviation:,.{digits}f}"


def digits_apart(*values: float) -> int:
    """Return how many digits show that values differ: three, or four if two different ones would look equal.

    Examples
    --------
    >>> digits_apart(0.9312, 0.9341), digits_apart(0.9312, 0.9314)
    (3, 4)
    """
    different = {round(value, 9) for value in values}
    return 3 if len({round(value, 3) for value in values}) == len(different) else 4


def difference(gap: Paired) -> str:
    """Write a difference with its sign."""
    return signed(gap.difference)


def signed(value: float) -> str:
    """Write a number with its sign, with a fourth digit if three would read as zero."""
    return f"{value:+.{digits_apart(value, 0.0)}f}"


def interval(gap: Paired) -> str:
    """Write a 95% interval, or the differences themselves if there are too few runs for one."""
    if gap.low is not None and gap.high is not None:
        return f"{signed(gap.low)} to {signed(gap.high)}"
    return "one run" if gap.n == 1 else f"none; runs: {', '.join(map(signed, gap.differences))}"


def with_interval(gap: Paired) -> str:
    """Write a difference and its 95% interval in parentheses, or how many runs it has."""
    sure = counted(gap.n, "run") if gap.low is None else interval(gap)
    return f"{difference(gap)} ({sure})"


def joined(words: Iterable[object]) -> str:
    """Write words with commas between them."""
    return ", ".join(map(str, words))


def n_right(right: Iterable[bool | None]) -> str:
    """Write how many are right of those that are known, nothing if none is.

    Examples
    --------
    >>> n_right([True, None, False]), n_right([None])
    ('1 of 2', '')
    """
    known = [bool(one) for one in right if one is not None]
    return f"{sum(known)} of {len(known)}" if known else ""


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
    for name, means in cells.items():
        if len(means) != n_columns:
            before = "the names" if notes is None else "the names, one of the notes"
            raise ValueError(
                f"There are {counted(len(columns), 'column')} and {counted(len(means), 'mean')} of {name!r}; it must "
                f"be a heading of {before}, and one for each mean. Give {len(means) + first} columns."
            )
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
