"""``starshl index``: keep items in a collection, search and export it; one file per command."""

import typer

from .add import add
from .binarize import binarize
from .build import build
from .declare import declare
from .export import export
from .label import label
from .remove import remove
from .search import search
from .verify import verify

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Build, change, search, verify and export a collection.")
for _command in (build, add, label, declare, remove, search, verify, export, binarize):
    app.command()(_command)
