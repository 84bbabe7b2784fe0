"""A report before it is written: sections of text, tables, charts and pictures, alike for every format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from .statistics import Paired, Summary

__all__ = [
    "Block",
    "Chart",
    "Document",
    "Pictures",
    "Section",
    "Series",
    "Table",
    "Text",
    "counted",
    "difference",
    "digits_apart",
    "interval",
    "listed",
    "plus_minus",
    "signed",
]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or a list if there are several lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under named columns; ``strong`` names cells (row, column) that stand out."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    n_text_columns: int = 1


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart; ``spread`` is the deviation at each point, None where it is not known."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a common axis; ``ticks`` are the values of x that are marked.

    ``tick_names`` makes the ticks things rather than numbers, whose points no line joins. ``band`` is for lines whose x
    is measured too: the deviation is drawn as an area, and no line is moved sideways to part the deviations.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[float, ...] = ()
    log_x: bool = False
    tick_names: tuple[str, ...] = ()
    band: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """A query and what each method retrieves; images are uint8 arrays of shape (height, width)."""

    caption: str
    query: np.ndarray
    rows: tuple[tuple[str, tuple[np.ndarray, ...], tuple[bool, ...]], ...]


Block = Text | Table | Chart | Pictures


@dataclass(slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    anchor: str
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """The whole report."""

    title: str
    subtitle: str
    sections: list[Section] = field(default_factory=list)


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
    """Return how many digits tell the values apart: three, or four if two different ones would look equal.

    Examples
    --------
    >>> digits_apart(0.9312, 0.9341), digits_apart(0.9312, 0.9314)
    (3, 4)
    """
    different = {round(value, 9) for value in values}
    return 3 if len({round(value, 3) for value in values}) == len(different) else 4


def difference(found: Paired) -> str:
    """Write a difference with its sign."""
    return signed(found.difference)


def signed(value: float) -> str:
    """Write a number with its sign, with a fourth digit if three would look like nothing."""
    return f"{value:+.{digits_apart(value, 0.0)}f}"


def interval(found: Paired) -> str:
    """Write a 95 % interval, or the differences themselves if there are too few runs for one."""
    if found.low is not None:
        return f"{signed(found.low)} to {signed(found.high)}"
    return "one run" if found.n == 1 else f"none; runs: {', '.join(map(signed, found.differences))}"


def listed(words: Iterable[object]) -> str:
    """Write words with commas between them."""
    return ", ".join(map(str, words))


def counted(n: int, word: str) -> str:
    """Write a number and a word, in the plural where needed."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")
