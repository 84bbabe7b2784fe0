"""Tables in and arrays out: .npy, .npz, .csv and, with the extra ``parquet``, Parquet."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ..codes import BinaryCodes

__all__ = ["Table", "check_output", "read_labels", "read_rows", "rows_for", "write_codes", "write_labels"]

READABLE = (".npy", ".npz", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of numbers, the names of their columns if they have any, and labels if they came along.

    ``vectors`` is the column of lists that the rows were read from, if it was one.
    """

    X: np.ndarray
    names: tuple[str, ...] | None = None
    y: np.ndarray | None = None
    vectors: str | None = None


def read_rows(
    path: Path,
    *,
    labels: str | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    vectors: str | None = None,
) -> Table:
    """Read rows and labels from one file.

    Parameters
    ----------
    path : .npy, .npz (arrays X and, if there, y), .csv or .parquet
    labels : column of labels by name, or by number if columns have no names; an array of an .npz
    drop : columns that are neither features nor labels
    keep : the features by name, in this order; other columns are left out. Ignored if columns have no names
    vectors : the .parquet column of lists, or the array of an .npz, that holds the rows
    """
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        from ._csv import read_csv

        if vectors is not None:
            raise ValueError(
                f"--vectors names a .parquet column of lists or an .npz array, and {str(path)!r} has neither. "
                "Leave it out."
            )
        table = read_csv(path, labels, drop or [], keep)
    elif suffix == ".parquet":
        from ._parquet import read_parquet

        table = read_parquet(path, labels, drop or [], keep, vectors)
    else:
        table = _read_arrays(path, labels, drop, vectors)
    _check_numbers(table, path)
    return table


def rows_for(
    hasher, path: Path, *, labels: str | None = None, drop: list[str] | None = None, vectors: str | None = None
) -> Table:
    """Read rows for a fitted hasher: by its column names if both sides have them."""
    names = getattr(hasher, "feature_names_in_", None)
    return read_rows(path, labels=labels, drop=drop, keep=None if names is None else list(names), vectors=vectors)


def read_labels(path: Path) -> np.ndarray:
    """Read labels from a file of their own: a .npy vector, y of an .npz, or the one column of a table."""
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        from ._csv import read_csv_labels

        return read_csv_labels(path)
    if suffix == ".parquet":
        from ._parquet import read_parquet_labels

        return read_parquet_labels(path)
    from ..collection.tables import load_arrays

    arrays = load_arrays(path)
    name = "y" if "y" in arrays else None if len(arrays) > 1 else next(iter(arrays), None)
    if name is None:
        raise ValueError(f"{str(path)!r} holds the arrays {_listed(arrays)}; call the one with the labels 'y'.")
    return arrays[name]


def check_readable(path: Path) -> None:
    """Refuse a path that is no file or of a kind that is not read here."""
    if path.suffix.lower() not in READABLE:
        raise ValueError(
            f"{str(path)!r} ends in {path.suffix!r}; input may be {', '.join(READABLE)}. Convert it first."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the path.")


def check_output(path: Path, suffixes: tuple[str, ...] | None = None) -> None:
    """Refuse an output path before work begins rather than after."""
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise ValueError(f"The output {str(path)!r} ends in {path.suffix!r}; it may be {', '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"The output {str(path)!r} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {str(path.parent)!r} for the output {path.name!r}. Create it first.")


def write_codes(path: Path, codes: BinaryCodes, y: np.ndarray | None = None) -> None:
    """Write codes: .npy packed bytes; .npz ``packed``, ``n_bits`` and perhaps ``y``; .csv a column of 0 and 1 a bit."""
    import numpy as np

    from .._files import write_atomically

    buffer = io.BytesIO()
    if path.suffix.lower() == ".npy":
        np.save(buffer, codes.packed, allow_pickle=False)
    elif path.suffix.lower() == ".npz":
        extra = {} if y is None else {"y": _without_objects(y)}
        np.savez(buffer, packed=codes.packed, n_bits=np.int64(codes.n_bits), **extra)
    else:
        header = ",".join(f"bit_{j}" for j in range(codes.n_bits))
        np.savetxt(buffer, codes.to_signs() > 0, fmt="%d", delimiter=",", header=header, comments="")
    write_atomically(path, buffer.getvalue())


def write_labels(path: Path, labels: np.ndarray) -> None:
    """Write labels: a .npy vector, or a .csv with one column named label."""
    import csv

    import numpy as np

    from .._files import write_atomically

    if path.suffix.lower() == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, _without_objects(labels), allow_pickle=False)
        write_atomically(path, buffer.getvalue())
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["label"])
    writer.writerows([label] for label in labels.tolist())
    write_atomically(path, text.getvalue().encode())


def _without_objects(labels: np.ndarray) -> np.ndarray:
    """Return text labels as fixed-width text, unlabeled rows empty: arrays of objects would need pickle."""
    import numpy as np

    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if label is None or label != label else str(label) for label in labels], dtype=str)


def _read_arrays(path: Path, labels: str | None, drop: list[str] | None, vectors: str | None) -> Table:
    if drop:
        raise ValueError(f"--drop names columns, and {str(path)!r} has none. Leave it out, or use a .csv or .parquet.")
    from ..collection.tables import load_arrays

    arrays = load_arrays(path)
    if path.suffix.lower() == ".npy":
        if labels is not None:
            raise ValueError(
                f"There is no file {labels!r}, and {str(path)!r} has no columns with names. "
                "Give the labels as a file of their own, or X and y in one .npz."
            )
        if vectors is not None:
            raise ValueError(f"--vectors names an array, and {str(path)!r} has only one, without a name. Leave it out.")
        return Table(arrays["X"])
    rows = vectors or "X"
    if rows not in arrays:
        raise ValueError(
            f"{str(path)!r} holds the arrays {_listed(arrays)}; the rows must be in one called 'X' or "
            "named by --vectors."
        )
    name = labels or "y"
    if labels is not None and labels not in arrays:
        raise ValueError(
            f"{str(path)!r} holds the arrays {_listed(arrays)} and no {labels!r}, nor is there such a file."
        )
    return Table(arrays[rows], y=arrays.get(name))


def _check_numbers(table: Table, path: Path) -> None:
    """Refuse what is no table of finite numbers, naming the column."""
    from ..collection.tables import check_finite

    X = table.X
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X of {str(path)!r} has dtype {X.dtype}; it must hold numbers. Convert it first.")
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise ValueError(
            f"X of {str(path)!r} has shape {X.shape}; it must be (rows, features) with at least one of each. "
            "Reshape it first."
        )
    check_finite(X, table.names, path)


def _listed(names) -> str:
    return ", ".join(map(repr, names)) or "none"
