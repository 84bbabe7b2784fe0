"""JSON from files that anyone may have written: one meaning per text, bounded depth, no surprises."""

from __future__ import annotations

import json
import math
from typing import Any

_MAX_DEPTH = 64  # far deeper than any file of ours, and far from the depth that exhausts the stack


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; refuse repeated keys, NaN, infinite numbers and deep nesting.

    Every refusal is a ValueError.

    Examples
    --------
    >>> parse_json('{"bits": 32}')
    {'bits': 32}
    >>> parse_json('{"bits": 32, "bits": 16}')
    Traceback (most recent call last):
    ...
    ValueError: the JSON text has the key 'bits' twice in one object
    """
    try:
        content = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = _decoder.decode(content)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    if content.count("[") + content.count("{") > _MAX_DEPTH:
        _refuse_deep(value)
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the JSON text has the key {key!r} twice in one object")
        result[key] = value
    return result


def _refuse_constant(word: str) -> float:
    raise ValueError(f"the JSON text holds {word}, which is not a number in JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the JSON text holds {text[:40]}, which is too large for a float")
    return value


def _refuse_deep(value: Any) -> None:
    # Level by level: a recursive walk would fail on exactly the values that it is meant to refuse.
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ValueError(f"the JSON text is nested more than {_MAX_DEPTH} deep")


# Made once: making one takes as long as reading a short text with it.
_decoder = json.JSONDecoder(
    object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant, parse_float=_finite_float
)
