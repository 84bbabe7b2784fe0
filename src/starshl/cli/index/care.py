"""``starshl index suspects`` and ``refit``: find wrong labels, and let the hasher follow the right ones."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..._common.words import counted
from ..options import AsJson, Progress
from .common import Folder, busy, open_collection, print_answer

Limit = Annotated[int, typer.Option("--limit", metavar="N", help="How many items to list at most.")]


def suspects(folder: Folder, limit: Limit = 20, progress: Progress = None, as_json: AsJson = False) -> None:
    """List items whose label is doubtful, the worst first.

    Each label is compared with what all other labeled items say. The collection must keep vectors.
    """
    with open_collection(folder, read_only=True) as collection, busy("comparing labels", progress):
        found = collection.suspects(limit)
        titles = [collection.title_of(item) for item in collection.get([each.id for each in found])]
    entries = [each._asdict() | {"title": title} for each, title in zip(found, titles, strict=True)]
    print_answer({"suspects": entries}, _table(entries, str(folder)), as_json)


def _table(entries: list[dict[str, Any]], folder: str) -> str:
    if not entries:
        return "No label is probably wrong."
    cells = [("id", "label", "likely", "chance it is wrong", "title")]
    cells += [
        (str(each["id"]), str(each["label"]), str(each["likely"]), f"{each['probability']:.1%}", each["title"])
        for each in entries
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    first = entries[0]["id"]
    return "\n".join(
        [*lines, f"To correct a label: starshl index label {folder} {first} --set LABEL; --clear removes it."]
    )


def refit(folder: Folder, progress: Progress = None, as_json: AsJson = False) -> None:
    """Fit the hasher anew to the labels that items have now.

    All items get new codes in one change. The collection must keep vectors.
    """
    with open_collection(folder) as collection, busy("fitting", progress):
        hasher = collection.refit()
        counts = collection.label_counts()
        answer: dict[str, Any] = {"method": hasher.method_name, "bits": hasher.n_bits_, "items": len(collection)}
    answer |= {"labels": sum(counts.values()), "classes": len(counts)}
    text = f"{answer['method']} was fitted anew to {counted(sum(counts.values()), 'label')} of "
    text += f"{counted(len(counts), 'class', 'classes')}; {counted(answer['items'], 'item')} encoded"
    print_answer(answer, text, as_json)
