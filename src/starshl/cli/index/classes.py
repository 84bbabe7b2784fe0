"""``starshl index classes``, ``rename``, ``merge``, ``remove-class`` and ``undo``: change classes, and no code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..._common.words import counted
from ..options import AsJson
from .common import Folder, open_collection, parsed_labels, print_answer

if TYPE_CHECKING:
    from ..._common.labels import Label
    from ...collection.answers import ClassChange
    from ...collection.collection import Collection

OldName = Annotated[str, typer.Argument(metavar="OLD", help="A class, by its name.")]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")]
ClassName = Annotated[str, typer.Argument(metavar="CLASS", help="A class, by its name.")]
Into = Annotated[str, typer.Argument(metavar="INTO", help="The class that it becomes part of.")]
Number = Annotated[
    int | None,
    typer.Option("--change", metavar="NUMBER", help="Which change to undo, as `index classes` numbers them."),
]


def classes(folder: Folder, as_json: AsJson = False) -> None:
    """List classes with their items, and what was changed.

    A class may have been renamed, merged into another one, or removed; each change has a number.
    """
    with open_collection(folder, read_only=True) as collection:
        counts, changes = collection.label_counts(), collection.class_changes()
        counts |= {label: 0 for label in collection.classes or () if label not in counts}
    answer = {
        "classes": [{"label": label, "items": count} for label, count in counts.items()],
        "changes": [_plain(change) for change in changes],
    }
    lines = [f"{label}\t{counted(count, 'item')}" for label, count in counts.items()] or ["There are no classes yet."]
    lines += [f"change {each.number}: {_said(each)}{' (undone)' if each.undone else ''}" for each in changes]
    print_answer(answer, "\n".join(lines), as_json)


def rename(folder: Folder, old: OldName, new: NewName, as_json: AsJson = False) -> None:
    """Give a class another name; no code changes. `index undo` takes it back."""
    _change(folder, lambda collection, labels: collection.rename_class(*labels), (old, new), as_json)


def merge(folder: Folder, label: ClassName, into: Into, as_json: AsJson = False) -> None:
    """Let a class count as another one; no code changes. `index undo` takes it back."""
    _change(folder, lambda collection, labels: collection.merge_classes(*labels), (label, into), as_json)


def remove_class(folder: Folder, label: ClassName, as_json: AsJson = False) -> None:
    """Hide a class, so that its items have no label. No code changes, and `index undo` takes it back."""
    _change(folder, lambda collection, labels: collection.remove_class(*labels), (label,), as_json)


def undo(folder: Folder, number: Number = None, as_json: AsJson = False) -> None:
    """Undo the last rename, merger or removal of a class. With --change, undo an earlier one."""
    _change(folder, lambda collection, _: collection.undo_class_change(number), (), as_json)


def _change(
    folder: Path,
    change: Callable[[Collection, list[Label]], ClassChange],
    names: tuple[str, ...],
    as_json: bool,
) -> None:
    with open_collection(folder) as collection:
        done = change(collection, parsed_labels(list(names), collection.label_kind) or [])
        shown = done.label if done.undone else done.into
        n_items = 0 if shown is None else collection.label_counts().get(shown, 0)
    undone = "undone: " if done.undone else ""
    items = f"; {shown} has {counted(n_items, 'item')} now" if shown is not None else ""
    print_answer(_plain(done) | {"items": n_items}, f"{undone}{_said(done)}{items}", as_json)


def _said(change: ClassChange) -> str:
    if change.kind == "remove":
        return f"{change.label} removed"
    return f"{change.label} {'renamed to' if change.kind == 'rename' else 'merged into'} {change.into}"


def _plain(change: ClassChange) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(change)
