"""Which of several code lengths to keep: the shortest one that is good enough."""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import LengthComparison
from .verdict import ENOUGH_ITEMS, GOOD_RECALL, keeps_neighbors

__all__ = ["choose_length"]

# Of ten lists of ten, one wrong item more.
_SMALL_LOSS = 0.01


def choose_length(lengths: Sequence[LengthComparison], n_items: int) -> tuple[int, str]:
    """Return the length to keep, and why.

    It is the shortest whose precision, where measured, is within .01 of the best and that keeps the neighbors, with a
    recall of at least .8; the longest if there is none.
    """
    if len(lengths) == 1:
        return lengths[0].n_bits, ""
    precisions = [length.methods[0].precision_at_10 for length in lengths]
    best = max((precision for precision in precisions if precision is not None), default=0.0)
    by_length = sorted(lengths, key=lambda length: length.n_bits)
    names = [str(length.n_bits) for length in by_length]
    tried = f"Of {', '.join(names[:-1])} and {names[-1]} bits, "
    for length in by_length:
        own = length.methods[0]
        precise = own.precision_at_10 is None or own.precision_at_10 >= best - _SMALL_LOSS
        if precise and keeps_neighbors(own, n_items):
            reason = f"recall of at least {GOOD_RECALL:g}"
            if own.precision_at_10 is not None:
                reason = f"precision within {_SMALL_LOSS:g} of the best and {reason}"
            return length.n_bits, f"{tried}{length.n_bits} were chosen: the shortest codes with {reason}."
    longest = by_length[-1].n_bits
    why = (
        "shorter codes lose too much" if n_items >= ENOUGH_ITEMS else "there are too few items to tell how much is lost"
    )
    return longest, f"{tried}{longest} were chosen: {why}."
