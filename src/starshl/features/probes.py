"""Probes: a few rows that identify a transformer which a file cannot hold, when the file is opened."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..stored_values import pack_values, unpack_values

__all__ = ["check_transformer", "pack_probe", "take_probe"]

Probe = dict[str, Any]


def take_probe(rows: Any, result: Any) -> Probe | None:
    """Return what went into a transformer and what came out, None if a file cannot hold them."""
    names = [str(name) for name in rows.columns] if hasattr(rows, "columns") else None
    cells = _array(rows)
    probe = {"rows": cells.ravel(), "shape": list(cells.shape), "names": names, "result": _array(result)}
    try:
        pack_values(probe)
    except (TypeError, ValueError):
        return None
    return probe


def pack_probe(probe: Probe, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the header entry of a probe; add its arrays to ``arrays``."""
    plain, packed = pack_values(probe, prefix)
    arrays |= packed
    return plain


def check_transformer(transformer: Any, spec: Any, prefix: str, arrays: dict[str, np.ndarray], position: int) -> Probe:
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
