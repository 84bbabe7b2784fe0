"""What is wrong with a table, said all at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from ...exceptions import InputError, InputWarning

MAX_SHOWN = 5  # names in an error message
#: Why a cell is no finite number: it holds text, a number with commas where none are expected, one with a point where
#: decimals follow a comma, infinity, or nothing.
Cause = Literal["text", "comma", "point", "infinite", "missing"]


class TableError(InputError):
    """A table that cannot be read as asked.

    Parameters
    ----------
    path : path of the file, or its URL
    problems : everything that is wrong, each as the end of a sentence that begins with the file name
    advice : what to do, with fields and names of parameters as in an :class:`~starshl.exceptions.InputError`
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
        **fields: Any,
    ) -> None:
        super().__init__(
            "{path!r} {what}",
            advice=advice,
            path=os.fspath(path),
            what="; it ".join(problems),
            problems=tuple(problems),
            droppable=tuple(droppable),
            unknown=tuple(unknown),
            causes=tuple(causes),
            **fields,
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong."""
        return self.fields["problems"]

    @property
    def droppable(self) -> tuple[str, ...]:
        """Columns that could be left out to read the rest."""
        return self.fields["droppable"]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of columns that the table does not have."""
        return self.fields["unknown"]

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Why cells are no numbers."""
        return self.fields["causes"]


class ColumnWarning(InputWarning):
    """A column that is used as a feature and probably is none."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that could be dropped."""
        return self.fields["columns"]


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
