"""Where results go: checks before any work begins, then files of codes and labels."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ..codes import BinaryCodes
    from .predictions import Predictions

__all__ = [
    "CODE_FILES",
    "LABEL_FILES",
    "PROBABILITY_FILES",
    "check_output",
    "check_output_folder",
    "write_codes",
    "write_labels",
]

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

    from .._files import replacing_file
    from .._threads import tiles

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

    from .._files import write_atomically

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
