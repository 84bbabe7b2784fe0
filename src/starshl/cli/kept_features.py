"""The option --metadata: columns that a model uses, kept as metadata, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import split_names

if TYPE_CHECKING:
    from ..tables import Table

__all__ = ["KeptFeatures", "keep_features"]

KeptFeatures = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="COLUMN,...",
        help="Columns that the codes come from to keep as metadata, too, so that hits show them and filters find them; "
        "`all` keeps all of them. May be repeated.",
    ),
]


def keep_features(table: Table, words: list[str] | None) -> Table:
    """Return a table whose metadata have the features that --metadata names."""
    from ..tables import with_kept_features

    names, features = split_names(words), table.feature_names or ()
    return with_kept_features(table, features if names == ("all",) and "all" not in features else names)
