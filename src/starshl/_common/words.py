"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, word: str, plural: str | None = None) -> str:
    """Write a number and a word, in the plural where needed.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "class", "classes")
    ('1 row', '1,200 rows', '2 classes')
    """
    return f"{n:,} {word if n == 1 else plural or word + 's'}"
