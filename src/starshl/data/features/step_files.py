"""Lists of fitted steps as files hold them: the steps of this package as data, all others by a probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.bundle import pack_values, unpack_values
from ...exceptions import BundleFormatError, MissingFunctionError
from .minilm import MiniLM
from .network import NetworkFeatures
from .numeric import Impute, Reduce, Scale, UnitLength
from .onnx_model import OnnxModel
from .picture_files import ReadPictures
from .pictures import PictureFeatures
from .sentence_model import SentenceTransformerModel
from .step import Step
from .table import OneHot, TableFeatures
from .text import Text

BUILT_IN_STEPS: dict[str, type[Step]] = {
    step.__name__: step
    for step in (
        Impute,
        MiniLM,
        NetworkFeatures,
        OneHot,
        OnnxModel,
        PictureFeatures,
        ReadPictures,
        Reduce,
        Scale,
        SentenceTransformerModel,
        TableFeatures,
        Text,
        UnitLength,
    )
}
#: A few rows and what a transformer made of them, which identify one that a file cannot hold when it is opened.
Probe = dict[str, Any]
HASHER_PREFIX = "hasher."  # of the names of arrays that belong to the hasher inside
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
        probes.append(None if is_built_in(step) else _take_probe(rows, result))
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
        return step.pack(prefix, arrays)
    packed = None if probe is None else _pack_probe(probe, prefix, arrays)
    return {"name": None, "type": getattr(step, "name", type(step).__name__), "probe": packed}


def unpack_steps(
    specs: list[dict[str, Any]], arrays: dict[str, np.ndarray], given: Sequence[Any] | None, reopen: str
) -> tuple[list[Any], list[Probe | None]]:
    """Return the steps and probes that :func:`pack_steps` was given.

    ``given`` are the transformers that the file does not hold, and ``reopen`` the call that takes them.
    """
    passed = _check_given_steps(specs, given, reopen)
    steps: list[Any] = []
    probes: list[Probe | None] = []
    for position, spec in enumerate(specs):
        prefix, probe = f"step.{position}.", None
        if spec["name"] is not None:
            steps.append(Step.unpack(spec, prefix, arrays, BUILT_IN_STEPS))
        else:
            if spec["probe"] is not None:
                probe = _check_transformer(passed[position], spec["probe"], prefix, arrays, position)
            steps.append(passed[position])
        probes.append(probe)
    return steps, probes


def check_arrays_have_owners(specs: Any, arrays: dict[str, np.ndarray]) -> None:
    """Refuse a file with arrays of steps that its header does not list: the rows would reach the hasher unprepared."""
    owners = [f"step.{position}." for position in range(len(specs))] if isinstance(specs, list) else []
    strays = [name for name in arrays if not name.startswith((*owners, HASHER_PREFIX, "fitted."))]
    if strays or not isinstance(specs, list):
        what = f"no step for its array {strays[0]!r}" if strays else "no list of steps"
        raise BundleFormatError.damaged(f"it has {what}")


def _check_given_steps(specs: list[dict[str, Any]], steps: Sequence[Any] | None, reopen: str) -> Sequence[Any]:
    """Return one entry per step: the transformer that was passed for it, or None if the file holds the step.

    ``reopen`` is the call that takes transformers, for the message that asks for them.
    """
    absent = [position for position, spec in enumerate(specs) if spec["name"] is None]
    if steps is None and absent:
        kinds = ", ".join(f"{specs[position]['type']} at position {position}" for position in absent)
        raise MissingFunctionError(
            "This model was fitted with transformers that a file cannot hold: {kinds}",
            advice="Reopen it with {reopen}: {n_steps} entries, the fitted transformers at these positions and None "
            "elsewhere.",
            kinds=kinds,
            reopen=reopen,
            n_steps=len(specs),
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


def _take_probe(rows: Any, result: Any) -> Probe | None:
    """Return what went into a transformer and what came out, None if a file cannot hold them."""
    names = [str(name) for name in rows.columns] if hasattr(rows, "columns") else None
    cells = _array(rows)
    probe = {"rows": cells.ravel(), "shape": list(cells.shape), "names": names, "result": _array(result)}
    try:
        pack_values(probe)
    except (TypeError, ValueError):
        return None
    return probe


def _pack_probe(probe: Probe, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the header entry of a probe; add its arrays to ``arrays``."""
    plain, packed = pack_values(probe, prefix)
    arrays |= packed
    return plain


def _check_transformer(transformer: Any, spec: Any, prefix: str, arrays: dict[str, np.ndarray], position: int) -> Probe:
    """Refuse a transformer whose output differs from that of the fitted one; return the probe."""
    probe = unpack_values(spec, arrays, prefix)
    try:
        result = _array(transformer.transform(_rows(probe)))
    except Exception as error:
        raise ValueError(
            f"steps[{position}] fails on rows of the fit ({error!r}). Pass the fitted transformers of the model, each "
            "at its position."
        ) from error
    expected = probe["result"]
    if result.shape != expected.shape or not _are_close(result, expected):
        raise ValueError(
            f"steps[{position}] gives {_shown(result)} where the transformer of the fit gave {_shown(expected)}: it is "
            "another one, or fitted on other rows. Pass the fitted transformers of the model, each at its position."
        )
    return probe


def _array(rows: Any) -> np.ndarray:
    if sparse.issparse(rows):
        rows = rows.toarray()
    # A table of several types becomes one of objects.
    return np.asarray(rows).astype(object) if hasattr(rows, "columns") else np.asarray(rows)


def _rows(probe: Probe) -> Any:
    cells = probe["rows"].reshape(probe["shape"])
    if probe["names"] is None:
        return cells
    # Only reached by transformers fitted on a data frame; pandas is not a dependency.
    import pandas

    return pandas.DataFrame(cells, columns=probe["names"]).infer_objects()


def _are_close(result: np.ndarray, expected: np.ndarray) -> bool:
    if result.dtype.kind in "biuf" and expected.dtype.kind in "biuf":
        return np.allclose(result, expected, rtol=1e-6, atol=1e-9, equal_nan=True)
    return bool(np.array_equal(result, expected))


def _shown(values: np.ndarray) -> str:
    text = str(values.tolist())
    return text if len(text) <= 80 else f"{text[:77]}..."
