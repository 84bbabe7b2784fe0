"""What a visitor asks for, as the query of an address: every search can be shared as a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from ...client.answers import CollectionInfo
from ...collection.guesses import ORDERS, Order
from ...collection.options import Filters, SearchOptions

MOST_NEIGHBORS = 100
_USUAL_NEIGHBORS = 10
_FIELD = "field."
_BOUNDS = {None: "=", "min": ">=", "max": "<="}
_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "whole numbers"),
    "float": (float, "numbers"),
    "bool": ({"true": True, "false": False}.__getitem__, "true or false"),
}
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Question:
    """A search: what to search for, how many neighbors, how near and how likely, and which items may be found.

    ``item``, ``text`` or ``upload`` says what to search for; if all are None, items are listed, those whose file has
    ``name`` in its path if it is given. ``selection`` names items that were selected on the map; no others are found.
    ``labels`` are classes, and ``which`` says whether their items are those that were "given" the label or those for
    which it is "guessed"; both if it is empty. ``order`` is that of a list without a query. ``hit`` is the item to
    explain, and ``methods`` asks for what other methods find. ``fields`` holds pairs of a parameter, such as
    "field.year.min", and its text.
    """

    item: int | None = None
    text: str | None = None
    upload: str | None = None
    name: str | None = None
    selection: str | None = None
    k: int = _USUAL_NEIGHBORS
    radius: float | None = None
    min_probability: float | None = None
    labels: tuple[str, ...] = ()
    which: str = ""
    order: Order = "id"
    fields: tuple[tuple[str, str], ...] = ()
    hit: int | None = None
    methods: bool = False
    after: int | None = None

    @classmethod
    def of(cls, query: QueryParams) -> Question:
        """Read a query, or say which part of it cannot be read."""
        fields = tuple((name, value) for name, value in query.multi_items() if name.startswith(_FIELD) and value)
        # The radius counts only while its box is checked: a slider always has a value.
        radius = _decimal(query, "radius", 10_000) if query.get("within") else None
        return cls(
            item=_number(query, "item", -_LARGEST_ID, _LARGEST_ID),
            text=query.get("text") or None,
            upload=query.get("upload") or None,
            name=query.get("name") or None,
            selection=query.get("selection") or None,
            k=_number(query, "k", 1, MOST_NEIGHBORS) or _USUAL_NEIGHBORS,
            radius=radius,
            # The least probability counts from above 0 on: 0 lets all items pass.
            min_probability=_decimal(query, "min_probability", 1) or None,
            labels=tuple(query.getlist("label")),
            which=_word(query, "which", ("", "given", "guessed")),
            order=cast(Order, _word(query, "order", ORDERS)),
            fields=fields,
            hit=_number(query, "hit", -_LARGEST_ID, _LARGEST_ID),
            methods=bool(query.get("methods")),
            after=_number(query, "after", -_LARGEST_ID, _LARGEST_ID),
        )

    @property
    def is_asked(self) -> bool:
        """Whether there is something to search for."""
        return (self.item, self.text, self.upload) != (None, None, None)

    def address(self, **changes: Any) -> str:
        """Return the query of the same search with some changes; usual values are left out."""
        new = replace(self, **changes)
        pairs: list[tuple[str, Any]] = [
            (name, value)
            for name in ("item", "text", "upload", "name", "selection", "hit", "after")
            if (value := getattr(new, name)) is not None
        ]
        pairs += [("k", new.k)] if new.k != _USUAL_NEIGHBORS else []
        pairs += [("within", "1"), ("radius", f"{new.radius:g}")] if new.radius is not None else []
        pairs += [("min_probability", f"{new.min_probability:g}")] if new.min_probability is not None else []
        pairs += [("label", label) for label in new.labels]
        pairs += [("which", new.which)] if new.which else []
        pairs += [("order", new.order)] if new.order != "id" else []
        pairs += [("methods", "1")] if new.methods else []
        return "?" + urlencode([*pairs, *new.fields])

    def asking(self, **query: Any) -> str:
        """Return the query of an address that asks something else with the same filters."""
        return self.address(**dict.fromkeys(("item", "text", "upload", "name", "hit", "after")) | query)

    def options(self, filters: Filters, *, rescore: bool | None = None) -> SearchOptions:
        """Return the search as a searcher takes it."""
        return SearchOptions(
            k=self.k,
            radius=self.radius,
            min_probability=self.min_probability,
            rescore=rescore,
            filters=filters,
        )

    def where(self, info: CollectionInfo) -> dict[str, Any]:
        """Return the filter on declared fields."""
        found: dict[str, Any] = {}
        for parameter, text in self.fields:
            name, bound = _split(parameter.removeprefix(_FIELD))
            kind = info.fields.get(name)
            if kind is None:
                known = ", ".join(info.fields) or "none"
                raise ValueError(f"This collection has no field {name[:80]!r} to filter by; it has: {known}.")
            conditions = found.setdefault(name, {})
            conditions[_BOUNDS[bound]] = _value(name, kind, text)
            if "=" in conditions and len(conditions) > 1:
                raise ValueError(
                    f"The field {name[:80]!r} is to have one value and to lie in a range. Give the value, or the "
                    "ends of the range."
                )
        return found

    def field_value(self, parameter: str) -> str:
        """Return the text that was given for a field, to show it again."""
        return dict(self.fields).get(f"{_FIELD}{parameter}", "")


def _split(name: str) -> tuple[str, str | None]:
    stem, _, end = name.rpartition(".")
    return (stem, end) if stem and end in ("min", "max") else (name, None)


def _word(query: QueryParams, name: str, allowed: tuple[str, ...]) -> str:
    given = query.get(name) or allowed[0]
    if given not in allowed:
        words = " or ".join(repr(word) for word in allowed if word)
        raise ValueError(f"{name} is {given[:40]!r}; it must be {words}. Correct the address or the form.")
    return given


def _number(query: QueryParams, name: str, low: int, high: int) -> int | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        value = high + 1
    if not low <= value <= high:
        allowed = "a whole number" if high >= _LARGEST_ID else f"a whole number from {low} to {high}"
        raise ValueError(f"{name} is {text[:40]!r}; it must be {allowed}. Correct the address or the form.")
    return value


def _decimal(query: QueryParams, name: str, high: int) -> float | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= high:
        raise ValueError(
            f"{name} is {text[:40]!r}; it must be a number from 0 to {high}. Correct the address or the form."
        )
    return value


def _value(name: str, kind: str, text: str) -> Any:
    if kind == "str":
        return text
    read, held = _READERS[kind]
    try:
        return read(text)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{name[:80]} is {text[:40]!r}; the field holds {held}. Write one of these.") from error
