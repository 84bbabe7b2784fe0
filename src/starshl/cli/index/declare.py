"""``starshl index declare``: metadata fields that filters find fast."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import AsJson, Progress
from .common import Folder, busy, opened, print_answer

__all__ = ["FieldOptions", "declare", "parsed_fields"]

FieldOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=TYPE",
        help="Declare a metadata field to filter by, such as year=int; types are int, float, str and bool. May be "
        "repeated.",
    ),
]
FieldArguments = Annotated[
    list[str],
    typer.Argument(metavar="NAME=TYPE...", help="Fields, such as year=int; types are int, float, str and bool."),
]


def declare(folder: Folder, fields: FieldArguments, progress: Progress = None, as_json: AsJson = False) -> None:
    """Declare metadata fields, so that filters on them are fast."""
    with opened(folder) as collection, busy("reading metadata", progress):
        collection.declare_fields(parsed_fields(fields))
        declared = collection.fields
    text = ", ".join(f"{name} ({kind})" for name, kind in declared.items())
    print_answer({"fields": declared}, f"declared fields: {text}", as_json)


def parsed_fields(texts: list[str] | None) -> dict[str, str]:
    """Return names and types from the command line."""
    fields = {}
    for text in texts or []:
        name, separator, kind = text.rpartition("=")
        if not separator:
            raise ValueError(f"The field is {text!r}; give its name and its type, such as year=int.")
        fields[name] = kind
    return fields
