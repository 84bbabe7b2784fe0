"""Where results go: checks before any work begins, then files of codes and labels."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ..codes.binary import BinaryCodes

CODE_FILES = (".npy", ".npz", ".csv")
_CSV_BLOCK = 10_000  # rows that are text in memory at a time
LABEL_FILES = (".npy", ".csv")
PROBABILITY_FILES = (".csv", ".npz")


def check_output(
    path: Path, inputs: Iterable[str | Path | None] = (), *, suffixes: tuple[str, ...] | None = None
) -> None:
    """Refuse an output that cannot be written, or that is one of the inputs under any name."""
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise ValueError(f"The output {str(path)!r} ends in {path.suffix!r}; it may be {', '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"The output {str(path)!r} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r} for the output {path.name!r}. Create it first.")
    for other in inputs:
        if other is not None and _is_same_file(path, Path(other)):
            raise ValueError(
                f"The output {str(path)!r} is the same file as the input {str(other)!r}, which it would overwrite. "
                "Choose another name."
            )
    _check_writable(path.parent)


def check_output_folder(path: Path) -> None:
    """Refuse a folder for results that cannot be made or written to."""
    present = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not present.is_dir():
        raise ValueError(f"{str(present)!r} is a file, so {str(path)!r} cannot be a folder. Choose another output.")
    _check_writable(present)


def write_codes(path: Path, codes: BinaryCodes, y: np.ndarray | None = None) -> None:
    """Write codes: .npy packed bytes; .npz ``packed``, ``n_bits`` and perhaps ``y``; .csv one column per bit."""
    import numpy as np

    from .._common.files import replacing_file
    from .._common.threads import tiles

    with replacing_file(path) as file:
        if path.suffix.lower() == ".npy":
            np.save(file, codes.packed, allow_pickle=False)
        elif path.suffix.lower() == ".npz":
            extra = {} if y is None else {"y": _without_objects(y)}
            arrays = {"packed": codes.packed, "n_bits": np.asarray(codes.n_bits, np.int64), **extra}
            np.savez(file, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes any name for an option
        else:
            header = ",".join(f"bit_{j}" for j in range(codes.n_bits))
            file.write(f"{header}\n".encode())
            for rows in tiles(len(codes), _CSV_BLOCK):
                np.savetxt(file, codes[rows].to_signs() > 0, fmt="%d", delimiter=",")


def write_labels(path: Path, predictions: Predictions) -> None:
    """Write labels: a .npy vector, a .csv with a column named label, or an .npz with probabilities."""
    import numpy as np

    from .._common.files import write_atomically

    buffer = io.BytesIO()
    labels = _without_objects(predictions.marked)
    if path.suffix.lower() == ".npy":
        np.save(buffer, labels, allow_pickle=False)
    elif path.suffix.lower() == ".npz" and predictions.proba is not None:
        arrays = {"label": labels, "classes": _without_objects(predictions.classes), "proba": predictions.proba}
        if predictions.novelty is not None:
            arrays["novelty"] = predictions.novelty
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes any name for an option
    else:
        buffer.write(_label_lines(predictions).encode())
    write_atomically(path, buffer.getvalue())


def _label_lines(predictions: Predictions) -> str:
    import csv

    columns: dict[str, list[Any]] = {"label": predictions.answers()}
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


def _is_same_file(path: Path, other: Path) -> bool:
    # samefile sees through symbolic and hard links; a path that does not exist can only be the same by name.
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _check_writable(folder: Path) -> None:
    # Tried, not asked: permissions say nothing about the file systems in which no file can be made.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"The folder {str(folder)!r} cannot be written to. Choose another one, or change its permissions."
        ) from error


def _without_objects(labels: np.ndarray) -> np.ndarray:
    """Return text labels as fixed-width text, unlabeled rows empty: arrays of objects would need pickle."""
    import numpy as np

    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if label is None or label != label else str(label) for label in labels], dtype=str)


# Predictions: labels of rows, perhaps with probabilities, and perhaps with rows that were rejected.


@dataclass(frozen=True, slots=True)
class Predictions:
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
    def of(cls, classifier: Any, X: Any, *, proba: bool = False, reject: float | None = None) -> Predictions:
        """Ask a classifier."""
        import numpy as np

        labels = classifier.predict(X)
        shares = classifier.predict_proba(X) if proba else None
        if reject is None:
            return cls(labels, np.zeros(len(labels), dtype=bool), classifier.classes_, shares)
        novelty = classifier.novelty(X)
        return cls(labels, novelty >= 1.0 - reject, classifier.classes_, shares, novelty)

    @property
    def confidence(self) -> np.ndarray | None:
        """The probability of each predicted label."""
        import numpy as np

        if self.proba is None:
            return None
        return self.proba[np.arange(len(self.proba)), np.searchsorted(self.classes, self.labels)]

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
