"""What is wrong with a table, said all at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

MAX_SHOWN = 5  # names in an error message
#: Why a cell is no finite number: it holds text, a number with commas where none are expected, one with a point where
#: decimals follow a comma, infinity, or nothing.
Cause = Literal["text", "comma", "point", "infinite", "missing"]


class TableError(ValueError):
    """A table that cannot be read as asked.

    Attributes
    ----------
    problems : everything that is wrong, each as the end of a sentence that begins with the file name
    droppable : columns that could be left out to read the rest
    unknown : names of columns that the table does not have
    causes : why cells are no numbers, if that is what is wrong
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problems: Sequence[str],
        advice: str = "",
        *,
        droppable: Sequence[str] = (),
        unknown: Sequence[str] = (),
        causes: Sequence[Cause] = (),
    ) -> None:
        super().__init__(f"{os.fspath(path)!r} {'; it '.join(problems)}. {advice}".rstrip())
        self._arguments = path, tuple(problems), advice
        self.problems = tuple(problems)
        self.droppable = tuple(droppable)
        self.unknown = tuple(unknown)
        self.causes = tuple(causes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error that another process raised arrive as it was: exceptions are rebuilt from their message."""
        return _rebuilt_error, (self._arguments, self.droppable, self.unknown, self.causes)


def _rebuilt_error(
    arguments: tuple[str | os.PathLike[str], tuple[str, ...], str],
    droppable: Sequence[str],
    unknown: Sequence[str],
    causes: Sequence[Cause],
) -> TableError:
    return TableError(*arguments, droppable=droppable, unknown=unknown, causes=causes)


class ColumnWarning(UserWarning):
    """A column that is used as a feature and probably is none."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


def shortened(names: Sequence[str], most: int = MAX_SHOWN) -> str:
    """Return names in a list; of many only the first.

    Examples
    --------
    >>> shortened(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
