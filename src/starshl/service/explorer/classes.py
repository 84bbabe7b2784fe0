"""The classes of a collection: renamed, merged, removed, and back. A page of its own, and a dialog on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from ...collection.answers import ClassChange
from ...collection.collection import Collection
from ...collection.labels import label_from_text, typed_label
from ..http.dependencies import SearcherDep, in_thread, result_of
from ..searcher import Searcher
from .guesses import ClassRow, class_rows
from .rendering import label_name, may_write, render

routes = APIRouter(include_in_schema=False)
_LONGEST_NAME = 200  # characters of a class, as in a lesson
_MOST_CHANGES = 20  # told of, the newest first


@dataclass(frozen=True, slots=True)
class ClassTable:
    """The classes of a collection with their items, the most used first, and what happened to them, the newest first.

    ``chosen`` is the class that somebody wants to change, None if there is none of that name.
    """

    rows: list[ClassRow]
    changes: list[ClassChange]
    chosen: ClassRow | None


@routes.get("/explore/{name}/classes")
async def classes(
    request: Request, searcher: SearcherDep, part: str = "", label: Annotated[str, Query(max_length=_LONGEST_NAME)] = ""
) -> Response:
    """Show all classes, and how one of them can be changed; a script asks for the second part alone."""
    values: dict[str, Any] = {
        "name": searcher.name,
        "active": "classes",
        "table": await in_thread(_table, searcher, label),
        "may_write": not searcher.read_only and may_write(request),
    }
    return render("classes/change.html" if part else "classes/page.html", request, **values)


@routes.post("/explore/{name}/classes")
async def change_classes(
    request: Request,
    searcher: SearcherDep,
    action: Annotated[Literal["rename", "merge", "remove", "undo"], Form()],
    label: Annotated[str, Form(max_length=_LONGEST_NAME)] = "",
    into: Annotated[str, Form(max_length=_LONGEST_NAME)] = "",
    number: Annotated[int | None, Form(ge=0)] = None,
) -> Response:
    """Rename, merge or remove a class, or undo that."""

    def change(collection: Collection) -> ClassChange:
        kind = collection.label_kind or "text"
        named = label_from_text(label, kind)
        if action == "rename":
            return collection.rename_class(named, typed_label(into, kind))
        if action == "merge":
            return collection.merge_classes(named, typed_label(into, kind, list(collection.label_counts())))
        return collection.remove_class(named)

    writer = searcher.writer
    made = await result_of(writer.undo_class_change(number) if action == "undo" else writer.change_classes(change))
    if "application/json" not in request.headers.get("accept", ""):
        return RedirectResponse(f"/explore/{searcher.name}/classes", 303)
    before, after = label_name(made.label), "" if made.kind == "remove" else label_name(made.into)
    if made.undone:
        return JSONResponse(
            {"message": f"Undone: {before} is as before.", "number": None, "before": after, "after": before}
        )
    said = {"rename": f"{before} is now called {after}.", "merge": f"{before} is now part of {after}."}
    message = said.get(made.kind, f"{before} is removed, and its items have no label.")
    return JSONResponse({"message": message, "number": made.number, "before": before, "after": after})


def _table(searcher: Searcher, label: str) -> ClassTable:
    with searcher.opened() as collection:
        rows = class_rows(collection.label_counts(), collection.guesses())
        known = {row.label for row in rows}
        rows += [ClassRow(each, 0, 0) for each in collection.classes or () if each not in known]
        changes = collection.class_changes()[: -_MOST_CHANGES - 1 : -1]
    return ClassTable(rows, changes, next((row for row in rows if label_name(row.label) == label), None))
