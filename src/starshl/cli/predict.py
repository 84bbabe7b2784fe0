"""``starshl predict``: classes of new rows by their nearest codewords."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import AsJson, Drop, Input, Jobs, Model, Vectors, load_model, print_json

__all__ = ["predict", "predict_rows"]

LABEL_FILES = (".npy", ".csv")

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="LABELS", help=".npy or .csv; without it labels go to standard output."),
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", "-l", metavar="COLUMN", help="A column of true labels: no feature, gives the accuracy."),
]


def predict(
    model: Model,
    input: Input,
    output: Output = None,
    labels: Labels = None,
    drop: Drop = None,
    vectors: Vectors = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Tell the class of each row: that of the nearest codeword."""
    found = predict_rows(model, input, output, labels=labels, drop=drop, vectors=vectors, jobs=jobs)
    if as_json:
        print_json(found)
        return
    for label in found.get("predictions", ()):
        typer.echo(label)
    if output is not None:
        typer.echo(f"{found['n_rows']:,} labels: {output}")
    if found["accuracy"] is not None:
        # Labels on standard output may be on their way into another program.
        typer.echo(f"accuracy {found['accuracy']:.4f}", err=output is None)


def predict_rows(
    model: Path,
    source: Path,
    output: Path | None,
    *,
    labels: str | None = None,
    drop: list[str] | None = None,
    vectors: str | None = None,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Classify a file with a model file; return what `--json` prints."""
    from .._validation import check_labels
    from .io import check_output, rows_for, write_labels

    if output is not None:
        check_output(output, LABEL_FILES)
    hasher = load_model(model, jobs)
    if not hasattr(hasher, "predict"):
        raise ValueError(
            f"{str(model)!r} holds {type(hasher).__name__}, which learns codes and no classes. "
            "Use `starshl encode`, or fit a StarSHL."
        )
    table = rows_for(hasher, source, labels=labels, drop=drop, vectors=vectors)
    predicted = hasher.predict(table.X)
    accuracy = None
    if table.y is not None:
        truth = check_labels(table.y, len(predicted))
        if truth.labeled.any():
            accuracy = float((predicted == table.y)[truth.labeled].mean())
    found = {"n_rows": len(predicted), "accuracy": accuracy}
    if output is None:
        return found | {"predictions": predicted.tolist()}
    write_labels(output, predicted)
    return found | {"output": str(output)}
