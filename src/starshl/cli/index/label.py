"""``starshl index label``: labels of stored items."""

from __future__ import annotations

from typing import Annotated

import typer

from ..._words import counted
from ..options import AsJson
from .common import Folder, ItemIds, opened, print_answer, unknown_ids_reported

__all__ = ["label", "parsed_labels"]

NewLabel = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="LABEL",
        help="The new label; a whole number is stored as a number, unless other labels are text.",
    ),
]
Clear = Annotated[bool, typer.Option("--clear", help="Remove the labels.")]


def label(folder: Folder, ids: ItemIds, new: NewLabel = None, clear: Clear = False, as_json: AsJson = False) -> None:
    """Set or clear the label of items.

    Codes that depend on the label change with it.
    """
    if (new is None) == (not clear):
        raise ValueError("Give either --set LABEL or --clear.")
    with opened(folder) as collection, unknown_ids_reported():
        known = parsed_labels(None if new is None else [new], collection.label_kind)
        items = collection.set_labels(ids, None if known is None else known * len(ids))
    sources = [item.code_from for item in items]
    answer = {
        "changed": len(items),
        "label": items[0].label if items else None,
        "codes_from_label": sources.count("label"),
        "codes_from_vector": sources.count("vector"),
    }
    text = f"{counted(len(items), 'item')} changed; codes from the label: {sources.count('label'):,}, from the vector: "
    print_answer(answer, f"{text}{sources.count('vector'):,}", as_json)


def parsed_labels(texts: list[str] | None, kind: str | None) -> list[str | int | bool] | None:
    """Return labels from the command line as those of the kind that a collection has, None if none are given."""
    return [_parsed(text, kind) for text in texts] if texts else None


def _parsed(text: str, kind: str | None) -> str | int | bool:
    if kind == "booleans":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"The label is {text!r}; the labels of this collection are true and false.")
        return text.lower() == "true"
    if kind == "text":
        return text
    from ...collection.labels import number_from_text

    number = number_from_text(text)
    if number is None and kind == "numbers":
        raise ValueError(f"The label is {text!r}; the labels of this collection are whole numbers.")
    return text if number is None else number
