"""``starshl index``: keep items in a collection, search and export it."""

from __future__ import annotations

import typer

from .add import add
from .binarize import binarize
from .care import refit, suspects
from .classes import classes, merge, remove_class, rename, undo
from .guess import guess
from .items import build, declare, export, label, rebuild, remove, verify
from .search import search

app = typer.Typer(no_args_is_help=True, help="Build, change, search, verify and export a collection.")
for _command in (
    build,
    add,
    label,
    classes,
    rename,
    merge,
    remove_class,
    undo,
    suspects,
    refit,
    guess,
    declare,
    remove,
    search,
    verify,
    rebuild,
    export,
    binarize,
):
    app.command(_command.__name__.replace("_", "-"))(_command)
