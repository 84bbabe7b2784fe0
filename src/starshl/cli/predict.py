"""``starshl predict``: classes of new rows, perhaps with probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._common.warn import warn_caller
from .._common.words import counted
from .options import AsJson, Decimal, Drop, Input, Jobs, Model, Vectors, load_model, print_json, split_names
from .outputs import LABEL_FILES, PROBABILITY_FILES, Predictions, check_output, write_labels
from .rows import RowOptions, label_file, read_rows

if TYPE_CHECKING:
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="LABELS",
        help=".npy or .csv (with --proba, .csv or .npz). Without it, labels go to standard output.",
    ),
]
Proba = Annotated[
    bool,
    typer.Option(
        "--proba",
        help="Add probabilities (StarRidge): that of the label on each line, and those of all classes in a file.",
    ),
]
Reject = Annotated[
    float | None,
    typer.Option(
        "--reject",
        metavar="SHARE",
        help="Leave the label blank if a row looks like none of the classes (StarRidge, StarSHL). About this share of "
        "the rows of known classes becomes blank, too: 0.05 is one in twenty.",
    ),
]
TrueLabels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="COLUMN|FILE",
        help="True labels to compare with, from a column, an array in an .npz, or a file. Without it, nothing is "
        "compared.",
    ),
]


def predict(
    model: Model,
    input: Input,
    output: Output = None,
    labels: TrueLabels = None,
    drop: Drop = None,
    decimal: Decimal = None,
    vectors: Vectors = None,
    proba: Proba = False,
    reject: Reject = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Predict the class of each row.

    With --proba, a line on standard output is a label, a tab and its probability. A .csv then has the columns label,
    confidence (the probability of the label) and one per class, p_CLASS; an .npz has the arrays label, classes and
    proba, one column per class. With --reject, there is also novelty, the share of training rows that look more
    familiar than the row: in the last column of a line or a .csv, and in an array of an .npz. A .npy marks rejected
    rows as unlabeled: -1 for whole numbers, empty for text.
    """
    options = RowOptions(labels, no_labels=labels is None, vectors=vectors, drop=split_names(drop), decimal=decimal)
    summary = predict_rows(model, input, output, options, proba=proba, reject=reject, jobs=jobs)
    if as_json:
        print_json(summary)
        return
    _echo_predictions(summary)
    if output is not None:
        typer.echo(f"{counted(summary['n_rows'], 'label')}{_rejected_phrase(summary)}: {output}")
    if summary["accuracy"] is not None:
        # Labels on standard output may be on their way into another program.
        typer.echo(_accuracy_sentence(summary), err=output is None)


def predict_rows(
    model: Path,
    source: Path,
    output: Path | None,
    options: RowOptions,
    *,
    proba: bool = False,
    reject: float | None = None,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Classify a file with a model file; return what `--json` prints."""
    if output is not None:
        suffixes = PROBABILITY_FILES if proba else LABEL_FILES
        check_output(output, [model, source, label_file(options.labels)], suffixes=suffixes)
    hasher = load_model(model, jobs)
    _check_predicts(hasher, model, proba=proba, reject=reject)
    table = read_rows(source, options, hasher)
    predictions = Predictions.of(hasher, table.X, proba=proba, reject=reject)
    summary: dict[str, Any] = {"n_rows": len(predictions.labels)}
    summary |= {"accuracy": None, "n_compared": 0, "n_training_rows": None}
    summary |= _compare(hasher, table, predictions) | predictions.totals()
    if output is not None:
        write_labels(output, predictions)
        return summary | {"output": str(output)}
    return summary | predictions.listed()


def _check_predicts(hasher: BaseHasher, model: Path, *, proba: bool, reject: float | None) -> None:
    from ..hashers.prepared import inner_hasher

    name = type(inner_hasher(hasher)).__name__
    if not hasattr(hasher, "predict"):
        raise ValueError(
            f"{str(model)!r} holds {name}, which learns codes, not classes. Use `starshl encode`, or fit a StarRidge."
        )
    if proba and not hasattr(hasher, "predict_proba"):
        raise ValueError(
            f"{str(model)!r} holds {name}, which predicts classes without probabilities. Leave --proba out, or fit a "
            "StarRidge."
        )
    if reject is not None and not hasattr(hasher, "novelty"):
        raise ValueError(
            f"{str(model)!r} holds {name}, which cannot tell whether a row belongs to none of the classes. Leave "
            "--reject out, or fit a StarRidge."
        )
    if reject is not None and not 0 <= reject <= 1:
        raise ValueError(f"--reject is {reject:g}; give a share from 0 to 1, such as 0.05.")


def _echo_predictions(summary: dict[str, Any]) -> None:
    numbers = [summary[name] for name in ("confidence", "novelty") if name in summary]
    for row, label in enumerate(summary.get("predictions", ())):
        typer.echo("\t".join(["" if label is None else str(label), *(f"{values[row]:.4f}" for values in numbers)]))


def _rejected_phrase(summary: dict[str, Any]) -> str:
    if "n_rejected" not in summary:
        return ""
    return f", {summary['n_rejected']:,} of them blank (none of the classes)"


def _compare(hasher: BaseHasher, table: Table, predictions: Predictions) -> dict[str, Any]:
    """Return the accuracy of rows that were not rejected, and how many come from the training of the model."""
    from .._common.labels import check_labels

    predicted = predictions.labels
    labeled = check_labels(table.y, len(predicted)).labeled & ~predictions.rejected
    if table.y is None or not labeled.any():
        return {}
    truth = table.y[labeled]
    classifier: Any = hasher  # it has predicted, so it has classes
    known = set(classifier.classes_.tolist())
    if known.isdisjoint(truth.tolist()):
        shown = ", ".join(map(repr, sorted(known, key=str)[:5]))
        warn_caller(
            f"None of the labels in {table.label_column!r}, such as {truth.tolist()[0]!r}, is a class of the model: "
            f"{shown}.",
        )
    return {
        "accuracy": float((predicted[labeled] == truth).mean()),
        "n_compared": int(labeled.sum()),
        "n_training_rows": _count_training_rows(hasher, table),
    }


def _count_training_rows(hasher: BaseHasher, table: Table) -> int | None:
    """Count rows that are among those the model keeps from its training; None if it keeps none to compare with."""
    import numpy as np

    from ..hashers.fit_record import data_digest
    from ..hashers.prepared import PreparedHasher, inner_hasher

    if data_digest(table.X) == getattr(hasher, "fit_record_", {}).get("rows_sha256", ""):
        return int(table.X.shape[0])
    kept = getattr(inner_hasher(hasher), "support_samples_", None)
    if not isinstance(kept, np.ndarray) or kept.dtype.kind != "f" or kept.ndim != 2 or len(kept) == 0:
        return None
    rows = hasher.prepare(table.X) if isinstance(hasher, PreparedHasher) else table.X
    if not isinstance(rows, np.ndarray) or rows.shape[1:] != kept.shape[1:]:
        return None
    known = {row.tobytes() for row in kept.astype(np.float64)}
    return sum(row.tobytes() in known for row in rows.astype(np.float64))


def _accuracy_sentence(summary: dict[str, Any]) -> str:
    accuracy = f"accuracy {summary['accuracy']:.4f} on the {counted(summary['n_compared'], 'labeled row')} given"
    if summary.get("n_rejected"):
        accuracy += f" that were not rejected ({summary['n_rejected']:,} of {summary['n_rows']:,} rows were)"
    if "mean_confidence" in summary:
        accuracy += f" (mean confidence {summary['mean_confidence']:.4f})"
    if summary["n_training_rows"]:
        return (
            f"{accuracy}; the model was trained on at least {summary['n_training_rows']:,} of these rows, "
            "so expect less on new ones"
        )
    return accuracy
