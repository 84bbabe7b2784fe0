"""Preprocessing steps as parts of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..exceptions import NotExpressibleError
from ..features import Impute, OneHot, PictureFeatures, Reduce, Scale, TableFeatures, Text, UnitLength
from .graph import Value
from .pictures import picture_features
from .vectors import project, squared_norms

__all__ = ["prepare"]


def prepare(steps: Sequence[Any], rows: Value) -> Value:
    """Return rows as fitted steps leave them."""
    for position, step in enumerate(steps):
        rows = _formula(step, position)(step, rows)
    return rows


def _formula(step: Any, position: int) -> Callable[[Any, Value], Value]:
    if type(step) in STEPS:
        return STEPS[type(step)]
    if isinstance(step, Text):
        raise NotExpressibleError(
            f"The step Text is at position {position}. Only the input of a graph holds words, so Text must be first. "
            "Export the hasher inside, hasher.hasher_, and let hasher.prepare make its rows."
        )
    known = ", ".join(sorted(each.__name__ for each in STEPS))
    raise NotExpressibleError(
        f"The step {type(step).__name__} at position {position} cannot be written as an ONNX graph; {known} can. "
        "Export the hasher inside, hasher.hasher_, and prepare rows before the graph sees them; or make a scikit-learn "
        "Pipeline of these steps and the hasher, and convert that with skl2onnx after register_converters()."
    )


def _scale(step: Any, rows: Value) -> Value:
    # As in Python, single precision is left and entered again around each operation.
    centered = (rows.cast(np.float64) - step.mean_).cast(rows.dtype)
    return (centered.cast(np.float64) / step.scale_).cast(rows.dtype)


def _impute(step: Any, rows: Value) -> Value:
    if step.fill_values_.dtype.kind == "O":
        raise _of_text("Impute", "missing text")
    is_missing = rows.apply("IsNaN", dtype=np.bool_)
    return is_missing.where(rows.graph.constant(step.fill_values_, rows.dtype), rows)


def _one_hot(step: Any, rows: Value) -> Value:
    values = step.category_values_.tolist()
    if any(isinstance(value, str) for value in values):
        raise _of_text("OneHot", "categories that are text")
    ends = np.cumsum(step.category_counts_).tolist()
    parts = []
    for column, (count, end) in enumerate(zip(step.category_counts_.tolist(), ends, strict=True)):
        own = rows.columns(column, column + 1)
        for value in values[end - count : end]:
            is_missing = value is None or value != value
            hit = own.apply("IsNaN", dtype=np.bool_) if is_missing else own.equals(float(value))
            parts.append(hit.cast(rows.dtype))
    return rows.graph.concat(parts)


def _table(step: Any, rows: Value) -> Value:
    if step.text_column_ >= 0:
        raise _of_text("TableFeatures", "a column of text")
    if len(step.category_columns_):
        raise _of_text("TableFeatures", "columns of categories, which are text to it")
    numbers = rows.cast(np.float64).take(step.number_columns_)
    return prepare([getattr(step, name) for name in step._number_steps()], numbers)


def _reduce(step: Any, rows: Value) -> Value:
    return project(rows, step.components_, step.intercept_)


def _unit_length(step: Any, rows: Value) -> Value:
    lengths = squared_norms(rows).apply("Sqrt")
    return rows / (lengths > 0.0).where(lengths, 1.0)


def _of_text(step: str, what: str) -> NotExpressibleError:
    return NotExpressibleError(
        f"The step {step} reads {what}, and this graph takes rows of numbers: ONNX has no operators that split and "
        "compare text as Python does. Export the hasher inside, hasher.hasher_, and let hasher.prepare make its rows."
    )


STEPS: dict[type, Callable[[Any, Value], Value]] = {
    Scale: _scale,
    Impute: _impute,
    OneHot: _one_hot,
    TableFeatures: _table,
    PictureFeatures: picture_features,
    Reduce: _reduce,
    UnitLength: _unit_length,
}
