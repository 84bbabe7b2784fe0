"""The identity of a code space: codes of equal identity may be compared, codes of different ones may not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._digest import array_digest

__all__ = ["check_space_id", "make_space_id"]

# 64 bits: among a million spaces, two share an identity with probability 3e-8.
_N_HEX_DIGITS = 16
_SPACE_ID = re.compile(f"[0-9a-f]{{{_N_HEX_DIGITS}}}")


def make_space_id(head: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the identity of a code space: the first digits of the SHA-256 of a JSON value and of named arrays."""
    return array_digest(arrays, json.dumps(head, sort_keys=True))[:_N_HEX_DIGITS]


def check_space_id(space_id: object) -> str | None:
    """Return an identity as it is, or refuse what cannot be one; None is unknown."""
    if space_id is None or (isinstance(space_id, str) and _SPACE_ID.fullmatch(space_id)):
        return space_id
    raise ValueError(
        f"space_id is {space_id!r}; it must be None or {_N_HEX_DIGITS} hexadecimal digits. "
        "Take it from hasher.space_id_ or codebook.space_id."
    )
