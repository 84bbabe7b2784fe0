"""The types that requests and answers share, with their limits."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt, StrictStr

__all__ = [
    "MOST_CONDITIONS",
    "MOST_EXPLANATIONS",
    "MOST_HITS",
    "MOST_QUERIES",
    "MOST_ROWS",
    "Id",
    "Ids",
    "Label",
    "Metadata",
    "Number",
    "TableRow",
    "Text",
    "Vector",
    "Vectors",
]

_SMALLEST_ID, _LARGEST_ID = -(2**63), 2**63 - 1
# What one request may bring or ask for. Higher limits spare clients requests; lower ones let other requests have their
# turn sooner, and bound the memory of an answer.
MOST_ROWS = 10_000
MOST_QUERIES = 1_000
MOST_HITS = 100_000
MOST_EXPLANATIONS = 1_000
MOST_CONDITIONS = 500

Id = Annotated[int, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
# The strict types keep true and 1 apart.
Label = (
    StrictBool
    | Annotated[StrictInt, Field(ge=_SMALLEST_ID, le=_LARGEST_ID)]
    | Annotated[StrictStr, Field(max_length=10_000)]
)
Text = Annotated[str, Field(max_length=100_000)]
#: A cell of a table, null where it is empty.
Cell = Annotated[StrictStr, Field(max_length=100_000)] | StrictInt | Annotated[float, Field(allow_inf_nan=False)] | None
TableRow = (
    Annotated[dict[str, Cell], Field(min_length=1, max_length=10_000)]
    | Annotated[list[Cell], Field(min_length=1, max_length=10_000)]
)
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=1_000_000)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=MOST_ROWS)]
Ids = Annotated[list[Id], Field(min_length=1, max_length=MOST_ROWS)]
Metadata = dict[str, Any]
