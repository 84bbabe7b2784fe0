"""``starshl predict``: classes of new rows, perhaps with probabilities, and perhaps with rows that are rejected."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._common.formulas import guarded
from .._common.warn import warn_caller
from .._common.words import counted
from .index.common import embedded_rows, holds_pictures, holds_texts, picture_rows
from .options import (
    AsJson,
    Decimal,
    Drop,
    Input,
    Jobs,
    ModelOrCollection,
    Vectors,
    check_output,
    is_collection,
    load_model,
    print_json,
    without_objects,
)
from .rows import read_rows, read_texts, row_columns

if TYPE_CHECKING:
    import numpy as np

    from ..collection.model_classes import ShownClasses
    from ..data.tables.columns import Columns
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

_LABEL_FILES = (".npy", ".csv")
_PROBABILITY_FILES = (".csv", ".npz")


def predict(
    model: ModelOrCollection,
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
    """Predict the class of each row with a model or a collection.

    A collection predicts the names that its classes have now. It takes what it was made of: vectors, texts, rows of a
    table, or pictures: a file or a folder, and each line begins with the path of the picture.

    With --proba, a line on standard output is a label, a tab and its probability. A .csv then has the columns label,
    confidence (the probability of the label) and one per class, p_CLASS; an .npz has the arrays label, classes and
    proba, one column per class. The command says so if too few labels were given to tell how right probabilities are.
    With --reject, there is also novelty, the share of training rows that look more familiar than the row: in the last
    column of a line or a .csv, and in an array of an .npz. A .npy marks rejected rows as unlabeled: -1 for whole
    numbers, empty for text.
    """
    columns = row_columns(labels, labels is None, vectors=vectors, drop=drop, decimal=decimal)
    summary = predict_rows(model, input, output, columns, proba=proba, reject=reject, jobs=jobs)
    if as_json:
        print_json(summary)
        return
    _echo_predictions(summary)
    if output is not None:
        typer.echo(f"{counted(summary['n_rows'], 'label')}{_rejected_phrase(summary)}: {output}")
    if summary["accuracy"] is not None:
        # Labels on standard output may be on their way into another program.
        typer.echo(_accuracy_sentence(summary), err=output is None)
    for caution in summary.get("cautions", ()):
        typer.echo(caution, err=output is None)


def predict_rows(
    model: Path,
    source: Path,
    output: Path | None,
    columns: Columns,
    *,
    proba: bool = False,
    reject: float | None = None,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Classify a file with a model file; return what `--json` prints."""
    if output is not None:
        suffixes = _PROBABILITY_FILES if proba else _LABEL_FILES
        check_output(output, [model, source, columns.label_file], suffixes=suffixes)
    hasher, classes = _classifier(model, jobs)
    _check_predicts(hasher, proba=proba, reject=reject)
    table = _embedded(model, source, columns, jobs) or read_rows(source, columns, hasher)
    predictions = RowPredictions.of(hasher, table.X, classes, proba=proba, reject=reject)
    summary: dict[str, Any] = {"n_rows": len(predictions.labels)}
    summary |= {"accuracy": None, "n_compared": 0, "n_training_rows": None}
    summary |= _compare(hasher, table, predictions) | predictions.totals()
    if proba:
        summary["cautions"] = hasher.class_part.fit_summary.cautions
    if output is not None:
        _write_labels(output, predictions, table.references)
        return summary | {"output": str(output)}
    return summary | ({} if table.references is None else {"files": table.references}) | predictions.listed()


def _classifier(path: Path, jobs: int | None) -> tuple[BaseHasher, ShownClasses]:
    """Return the hasher of a model file or of a collection, and what its classes are called."""
    from ..collection.model_classes import fitted_classes

    if not is_collection(path):
        hasher = load_model(path, jobs)
        return hasher, fitted_classes(hasher)
    from ..collection.collection import Collection

    with Collection(path, read_only=True, n_jobs=jobs) as collection, collection.reading() as (state, _):
        return state.hasher, state.shown_classes


def _embedded(path: Path, source: Path, columns: Columns, jobs: int | None) -> Table | None:
    """Return what the embedder of a collection makes of pictures, texts or rows; None if none is used."""
    if not is_collection(path):
        return None
    from ..collection.collection import Collection
    from ..collection.importing.texts import text_field
    from ..data.tables.reading import Table

    with Collection(path, read_only=True) as collection:
        if holds_pictures(collection, [source]):
            X, files = picture_rows(collection, [source])
            return Table(X, references=files)
        if collection.kind == "rows":
            table = read_rows(source, columns, collection.hasher)
            return replace(table, X=embedded_rows(collection, table.X))
        if not holds_texts(collection, source, columns.vectors):
            return None
        texts, about = read_texts(source, text_field(collection), columns, {})
        assert collection.embedder is not None
        vectors = collection.embedder.embed(texts, n_jobs=jobs)
        return Table(vectors, about.get("labels"), label_column=columns.label_column or str(columns.label_file))


def _check_predicts(hasher: BaseHasher, *, proba: bool, reject: float | None) -> None:
    hasher.require("predict")
    if proba:
        hasher.require("predict_proba")
    if reject is not None:
        hasher.require("novelty")
    if reject is not None and not 0 <= reject <= 1:
        raise ValueError(f"--reject is {reject:g}; give a share from 0 to 1, such as 0.05.")


@dataclass(frozen=True, slots=True)
class RowPredictions:
    """What a model says of rows.

    Parameters
    ----------
    labels : array of shape (n_rows,), the predicted label, also where it was rejected
    rejected : bool array of shape (n_rows,)
    classes : array of shape (n_classes,)
    proba : array of shape (n_rows, n_classes) of probabilities, None if they were not asked for
    novelty : array of shape (n_rows,), None if rows are not to be rejected
    """

    labels: np.ndarray
    rejected: np.ndarray
    classes: np.ndarray
    proba: np.ndarray | None = None
    novelty: np.ndarray | None = None

    @classmethod
    def of(
        cls, hasher: BaseHasher, X: Any, classes: ShownClasses, *, proba: bool = False, reject: float | None = None
    ) -> RowPredictions:
        """Ask a hasher whose classes have these names; a row of a class that was removed is rejected."""
        import numpy as np

        from ..collection.predictions import predicted

        found = predicted(hasher, classes, X, with_shares=proba)
        names = np.array(classes.labels)
        rejected = np.array([label is None for label in found.labels], bool)
        labels = np.array([classes.labels[0] if label is None else label for label in found.labels], names.dtype)
        shares = found.shares if proba else None
        if reject is None:
            return cls(labels, rejected, names, shares)
        novelty = hasher.novelty(X)
        return cls(labels, rejected | (novelty >= 1.0 - reject), names, shares, novelty)

    @property
    def confidence(self) -> np.ndarray | None:
        """The probability of each predicted label."""
        import numpy as np

        if self.proba is None:
            return None
        column = {label: number for number, label in enumerate(self.classes.tolist())}
        return self.proba[np.arange(len(self.proba)), [column[label] for label in self.labels.tolist()]]

    @property
    def marked(self) -> np.ndarray:
        """The labels, marked as unlabeled where they were rejected."""
        from ..hashers.star.novelty import marked_labels

        return marked_labels(self.labels, self.rejected) if self.rejected.any() else self.labels

    def answers(self) -> list[Any]:
        """Return the labels, None where they were rejected."""
        return [None if no else label for label, no in zip(self.labels.tolist(), self.rejected, strict=True)]

    def totals(self) -> dict[str, Any]:
        """Return figures about all rows."""
        found: dict[str, Any] = {}
        if self.confidence is not None:
            found["mean_confidence"] = float(self.confidence.mean())
        if self.novelty is not None:
            found["n_rejected"] = int(self.rejected.sum())
        return found

    def listed(self) -> dict[str, Any]:
        """Return everything, as lists."""
        found: dict[str, Any] = {}
        if self.proba is not None and self.confidence is not None:
            found |= {"confidence": self.confidence.tolist(), "classes": self.classes.tolist()}
            found["probabilities"] = self.proba.tolist()
        if self.novelty is not None:
            found["novelty"] = self.novelty.tolist()
        return found | {"predictions": self.answers()}


def _write_labels(path: Path, predictions: RowPredictions, files: list[str | None] | None) -> None:
    """Write labels: a .npy vector, a .csv with a column named label, or an .npz with probabilities."""
    import numpy as np

    from .._common.files import write_atomically

    buffer = io.BytesIO()
    labels = without_objects(predictions.marked)
    if path.suffix.lower() == ".npy":
        np.save(buffer, labels, allow_pickle=False)
    elif path.suffix.lower() == ".npz" and predictions.proba is not None:
        arrays = {"label": labels, "classes": without_objects(predictions.classes), "proba": predictions.proba}
        if predictions.novelty is not None:
            arrays["novelty"] = predictions.novelty
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes any name for an option
    else:
        buffer.write(_label_lines(predictions, files).encode())
    write_atomically(path, buffer.getvalue())


def _label_lines(predictions: RowPredictions, files: list[str | None] | None) -> str:
    columns: dict[str, list[Any]] = {} if files is None else {"file": list(map(guarded, files))}
    columns["label"] = list(map(guarded, predictions.answers()))
    if predictions.proba is not None and predictions.confidence is not None:
        columns["confidence"] = predictions.confidence.tolist()
        for label, column in zip(predictions.classes.tolist(), predictions.proba.T, strict=True):
            columns[f"p_{label}"] = column.tolist()
    if predictions.novelty is not None:
        columns["novelty"] = predictions.novelty.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _echo_predictions(summary: dict[str, Any]) -> None:
    numbers = [summary[name] for name in ("confidence", "novelty") if name in summary]
    for row, label in enumerate(summary.get("predictions", ())):
        words = [summary["files"][row]] if "files" in summary else []
        words.append("" if label is None else str(label))
        typer.echo("\t".join([*words, *(f"{values[row]:.4f}" for values in numbers)]))


def _rejected_phrase(summary: dict[str, Any]) -> str:
    if "n_rejected" not in summary:
        return ""
    return f", {summary['n_rejected']:,} of them blank (none of the classes)"


def _compare(hasher: BaseHasher, table: Table, predictions: RowPredictions) -> dict[str, Any]:
    """Return the accuracy of rows that were not rejected, and how many come from the training of the model."""
    from .._common.labels import check_labels

    predicted = predictions.labels
    labeled = check_labels(table.y, len(predicted)).labeled & ~predictions.rejected
    if table.y is None or not labeled.any():
        return {}
    truth = table.y[labeled]
    known = set(predictions.classes.tolist())
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

    if data_digest(table.X) == hasher.fit_record.get("rows_sha256", ""):
        return int(table.X.shape[0])
    kept = hasher.kept_samples
    if not isinstance(kept, np.ndarray) or kept.dtype.kind != "f" or kept.ndim != 2 or len(kept) == 0:
        return None
    rows = hasher.prepare(table.X)
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
