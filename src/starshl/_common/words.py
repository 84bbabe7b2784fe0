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


def percent(share: float, digits: int = 0) -> str:
    """Write a share with the digits that it deserves: nothing but 1 is 100%.

    Examples
    --------
    >>> percent(0.07), percent(0.998), percent(0.99996), percent(1.0), percent(0.8123, digits=1)
    ('7%', '99.8%', '>99.9%', '100%', '81.2%')
    """
    if share == 1:
        return "100%"
    text = f"{share:.{1 if share > 0.99 else digits}%}"
    return ">99.9%" if text == "100.0%" else text
