"""Which codes may meet in an index: those of one space, compared by the distance that they are made for."""

from __future__ import annotations

import warnings

from ..codes import BinaryCodes
from ..exceptions import SpaceMismatchError, UnknownSpaceWarning

__all__ = ["check_metric", "check_spaces", "warn_of_unknown_space"]

_CALLER_OF_INDEX = 4  # stack level, seen from here: through _meet and the method of the index


def check_metric(codes: BinaryCodes, name: str, metric: str) -> None:
    """Refuse codes that an index of this metric would compare in a way they are not made for."""
    if codes.metric not in ("hamming", metric):
        raise ValueError(
            f"These are hybrid codes, which begin with a class; {name} treats all bits the same and would rank them "
            "wrongly. Make their index with hasher.make_index(codes) or make_index(codes, hasher=hasher)."
        )


def check_spaces(arriving: str | None, held: str | None) -> None:
    """Refuse codes of another space than those of an index; None is unknown."""
    if None not in (arriving, held) and arriving != held:
        raise SpaceMismatchError(
            f"These codes are of space {arriving}; the index holds codes of space {held}. Distances between spaces "
            "mean nothing. Encode with the hasher of the index, or fit hashers to one Codebook."
        )


def warn_of_unknown_space(arriving: str | None, held: str | None) -> None:
    """Warn that codes of an unknown space and of a known one meet."""
    if arriving is None:
        what = f"The space of these codes is unknown; the index holds codes of space {held}"
        advice = "If the same hasher made them, say so: BinaryCodes(packed, n_bits, space_id=hasher.space_id_)."
    else:
        what = f"These codes are of space {arriving}; the index holds codes of an unknown space"
        advice = "Make the index from codes that know theirs, such as hasher.encode(X), or set index.space_id."
    warnings.warn(
        f"{what}. They are compared as if both were of the same space. {advice}",
        UnknownSpaceWarning,
        stacklevel=_CALLER_OF_INDEX,
    )
