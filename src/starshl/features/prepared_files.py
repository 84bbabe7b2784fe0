"""Checks of model files that hold the steps before a hasher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exceptions import BundleFormatError

__all__ = ["HASHER_PREFIX", "check_arrays_have_owners", "check_given_steps"]

HASHER_PREFIX = "hasher."  # of the names of arrays that belong to the hasher inside


def check_arrays_have_owners(specs: Any, arrays: dict[str, np.ndarray]) -> None:
    """Refuse a file with arrays of steps that its header does not list: the rows would reach the hasher unprepared."""
    owners = [f"step.{position}." for position in range(len(specs))] if isinstance(specs, list) else []
    strays = [name for name in arrays if not name.startswith((*owners, HASHER_PREFIX, "fitted."))]
    if strays or not isinstance(specs, list):
        what = f"no step for its array {strays[0]!r}" if strays else "no list of steps"
        raise BundleFormatError(
            f"The model file is damaged: it has {what}. Save the model again or fetch a fresh copy."
        )


def check_given_steps(specs: list[dict[str, Any]], steps: Sequence[Any] | None, reopen: str) -> Sequence[Any]:
    """Return one entry per step: the transformer that was passed for it, or None if the file holds the step.

    ``reopen`` is the call that takes transformers, for the message that asks for them.
    """
    absent = [position for position, spec in enumerate(specs) if spec["name"] is None]
    if steps is None and absent:
        kinds = ", ".join(f"{specs[position]['type']} at position {position}" for position in absent)
        raise ValueError(
            f"This model was fitted with transformers that a file cannot hold: {kinds}. Reopen it with {reopen}: "
            f"{len(specs)} entries, the fitted transformers at these positions and None elsewhere."
        )
    if steps is None:
        return [None] * len(specs)
    if len(steps) != len(specs):
        raise ValueError(f"steps has {len(steps)} entries; this model has {len(specs)} steps. Give one entry per step.")
    for position, step in enumerate(steps):
        if position in absent and step is None:
            raise ValueError(f"steps[{position}] is None; pass the fitted {specs[position]['type']} of the model.")
        if position not in absent and step is not None:
            raise ValueError(f"steps[{position}] is in the file already ({specs[position]['name']}). Pass None there.")
    return steps
