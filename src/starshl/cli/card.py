"""``starshl card``: what a model is, what it was fitted on, and how well it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Decimal, Drop, Labels, Model, Vectors, load_model, print_json, split_names
from .outputs import check_output
from .rows import RowOptions, label_file, read_rows

__all__ = ["card"]

HeldOut = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="INPUT",
        help="Labeled rows that the fit has not seen, to measure precision and accuracy; a table as for `fit`.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="MODEL", help="Write a copy of the model with the measurement in its card."),
]


def card(
    model: Model,
    held_out: HeldOut = None,
    labels: Labels = None,
    drop: Drop = None,
    decimal: Decimal = None,
    vectors: Vectors = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Print the card of a model: data, settings, figures, limits.

    As Markdown, or as JSON with --json.
    """
    if output is not None:
        if held_out is None:
            raise ValueError(
                "--output stores a measurement in the card, and there is none. Give --held-out INPUT, or leave "
                "--output out."
            )
        check_output(output, [model, held_out, label_file(labels)])
    from ..cards import card_markdown, measure, model_card

    hasher = load_model(model)
    if held_out is not None:
        options = RowOptions(labels, vectors=vectors, drop=split_names(drop), decimal=decimal)
        table = read_rows(held_out, options, hasher)
        measure(hasher, table.X, table.y)
    if output is not None:
        hasher.save(output)
    contents = model_card(hasher)
    if as_json:
        print_json(contents)
    else:
        typer.echo(card_markdown(contents), nl=False)
