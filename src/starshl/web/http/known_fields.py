"""What a body may hold: the fields of the model that a route reads it into, for messages about wrong ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

__all__ = ["arrived", "known_fields"]

_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def known_fields(route: Any, where: Sequence[str | int]) -> list[str]:
    """Return the names that a body has at the place of an error, which begins with "body"; none if that is unclear."""
    body = getattr(route, "body_field", None)
    model = None if body is None or where[:1] != ("body",) else _model_in(body.field_info.annotation)
    for part in where[1:-1]:
        if model is None or isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        model = None if field is None else _model_in(field.annotation)
    return [] if model is None else list(model.model_fields)


def arrived(value: Any) -> str:
    """Return of which kind a JSON value is."""
    return "null" if value is None else _KINDS.get(type(value), "something else")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    return next(_models(annotation), None)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
