"""Lists of fitted steps as files hold them: the steps of this package as data, all others by a probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .impute import Impute
from .network import NetworkFeatures
from .one_hot import OneHot
from .pictures import PictureFeatures
from .prepared_files import check_given_steps
from .probes import Probe, check_transformer, pack_probe, take_probe
from .read_pictures import ReadPictures
from .reduce import Reduce
from .scale import Scale
from .step import Step
from .table import TableFeatures
from .text import Text
from .unit_length import UnitLength

__all__ = ["BUILT_IN_STEPS", "is_built_in", "pack_steps", "take_probes", "unpack_steps"]

BUILT_IN_STEPS: dict[str, type[Step]] = {
    step.__name__: step
    for step in (
        Impute,
        NetworkFeatures,
        OneHot,
        PictureFeatures,
        ReadPictures,
        Reduce,
        Scale,
        TableFeatures,
        Text,
        UnitLength,
    )
}

_PROBE_ROWS = 3  # tell another transformer apart, and fit in a header


def is_built_in(step: Any) -> bool:
    """Return whether a file can hold a step."""
    return BUILT_IN_STEPS.get(type(step).__name__) is type(step)


def take_probes(steps: Sequence[Any], X: Any) -> list[Probe | None]:
    """Return one probe per step that a file cannot hold, taken on the first rows of X, and None for the others."""
    if X is None or all(is_built_in(step) for step in steps):
        return [None] * len(steps)
    rows = X[:_PROBE_ROWS]
    probes: list[Probe | None] = []
    for step in steps:
        result = step.transform(rows)
        probes.append(None if is_built_in(step) else take_probe(rows, result))
        rows = result
    return probes


def pack_steps(
    steps: Sequence[Any], probes: Sequence[Probe | None], arrays: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """Return what a file's header says about steps; add their arrays to ``arrays``."""
    return [
        _pack_step(step, probe, f"step.{position}.", arrays)
        for position, (step, probe) in enumerate(zip(steps, probes, strict=True))
    ]


def _pack_step(step: Any, probe: Probe | None, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if is_built_in(step):
        return step._pack(prefix, arrays)
    packed = None if probe is None else pack_probe(probe, prefix, arrays)
    return {"name": None, "type": type(step).__name__, "probe": packed}


def unpack_steps(
    specs: list[dict[str, Any]], arrays: dict[str, np.ndarray], given: Sequence[Any] | None, reopen: str
) -> tuple[list[Any], list[Probe | None]]:
    """Return the steps and probes that :func:`pack_steps` was given.

    ``given`` are the transformers that the file does not hold, and ``reopen`` the call that takes them.
    """
    passed = check_given_steps(specs, given, reopen)
    steps: list[Any] = []
    probes: list[Probe | None] = []
    for position, spec in enumerate(specs):
        prefix, probe = f"step.{position}.", None
        if spec["name"] is not None:
            steps.append(Step._unpack(spec, prefix, arrays, BUILT_IN_STEPS))
        else:
            if spec["probe"] is not None:
                probe = check_transformer(passed[position], spec["probe"], prefix, arrays, position)
            steps.append(passed[position])
        probes.append(probe)
    return steps, probes
