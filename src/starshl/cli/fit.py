"""``starshl fit``: learn hash functions from a table and write a model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Drop, Input, Jobs, Progress, Vectors, print_json, progress_shown

if TYPE_CHECKING:
    import numpy as np

    from ..base import BaseHasher
    from .io import Table

__all__ = ["fit", "fit_model", "make_hasher", "read_training_rows"]

_PYTHON_WORDS = {"True": True, "False": False, "None": None}  # JSON has its own spelling, which works too

Output = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="COLUMN|FILE",
        help="Labels: a column by name (by number without a header), an array of an .npz, or a file of their own. "
        "-1 or an empty cell is an unlabeled row. An .npz needs no option if its labels are called y.",
    ),
]
NoLabels = Annotated[bool, typer.Option("--no-labels", help="Ignore y of an .npz: learn --n-codewords clusters.")]
Bits = Annotated[int, typer.Option("--bits", "-b", metavar="N", help="Length of the codes.")]
MethodName = Annotated[str, typer.Option("--method", "-m", metavar="NAME", help="A method from `starshl methods`.")]
Kernels = Annotated[
    str | None,
    typer.Option(
        "--kernels",
        metavar="WORD",
        help="scaled (default), paper, precomputed (INPUT holds kernel values), or graph: a Gaussian bent by the "
        "neighbor graph of all rows, best when few rows are labeled.",
    ),
]
Cost = Annotated[float | None, typer.Option("--C", metavar="X", help="Weight of the losses against the norms.")]
Codewords = Annotated[
    int | None, typer.Option("--n-codewords", metavar="N", help="Number of clusters if no row has a label.")
]
Paper = Annotated[bool, typer.Option("--paper", help="The settings of the paper (StarSHL only).")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the method; may be repeated."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same bytes.")]


def fit(
    input: Input,
    output: Output,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Bits = 32,
    method: MethodName = "StarSHL",
    kernels: Kernels = None,
    cost: Cost = None,
    n_codewords: Codewords = None,
    paper: Paper = False,
    settings: Setting = None,
    drop: Drop = None,
    vectors: Vectors = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Learn hash functions from rows and write a model file.

    All rows may be labeled, some, or none: StarSHL then learns by supervision, from both kinds, or clusters.
    """
    from .io import check_output

    check_output(output)
    params = {"kernels": kernels, "C": cost, "n_codewords": n_codewords, "n_jobs": jobs}
    params = {name: value for name, value in params.items() if value is not None} | _parse_settings(settings or [])
    hasher = make_hasher(method, bits, params, paper=paper, seed=seed, progress=progress_shown(progress))
    table, y = read_training_rows(input, labels, no_labels, drop, vectors)
    found = fit_model(hasher, table, y, output)
    if as_json:
        print_json(found)
        return
    labeled = f"{found['n_labeled']:,} of {found['n_rows']:,} rows labeled"
    origin = f" in {found['vectors']}" if found["vectors"] else ""
    typer.echo(
        f"{found['method']} learned {found['n_bits']} bits from {found['n_features']} features{origin}, {labeled}, "
        f"in {found['seconds']:.1f} s: {found['model']} ({found['file_bytes']:,} bytes)"
    )


def fit_model(hasher: BaseHasher, table: Table, y: np.ndarray | None, output: Path) -> dict[str, Any]:
    """Fit a hasher and save it; return what `--json` prints."""
    from time import perf_counter

    import numpy as np

    from .._validation import check_labels

    start = perf_counter()
    hasher.fit(table.X, y)
    seconds = perf_counter() - start
    # How the fit was run is no part of the model: the file is the same for any number of threads.
    as_run = {"verbose": 0, "n_jobs": None}
    hasher.set_params(**{name: value for name, value in as_run.items() if name in hasher.get_params()})
    if table.names is not None:
        # A later table may then have its columns in any order, and more of them.
        hasher.feature_names_in_ = np.array(table.names, dtype=object)
    hasher.save(output)
    n_rows = table.X.shape[-2]
    found = {
        "model": str(output),
        "method": type(hasher).__name__,
        "n_bits": hasher.n_bits,
        "n_rows": n_rows,
        "n_labeled": int(check_labels(y, n_rows).labeled.sum()),
        "n_features": table.X.shape[-1],
        "vectors": table.vectors,
        "seconds": round(seconds, 3),
        "file_bytes": output.stat().st_size,
    }
    learned = {"n_iter": "n_iter_", "objective": "objective_history_", "classes": "classes_"}
    found |= {name: getattr(hasher, attribute, None) for name, attribute in learned.items()}
    if found["objective"] is not None:
        found["objective"] = found["objective"][-1]
    return found


def make_hasher(
    method: str, n_bits: int, params: dict[str, Any], *, paper: bool = False, seed: int = 0, progress: bool = False
) -> BaseHasher:
    """Return an unfitted hasher; refuse parameters that its class does not have."""
    from inspect import signature

    from ..catalog import get_class

    hasher_class = get_class(method)
    known = list(signature(hasher_class).parameters)
    for name in params:
        if name not in known:
            raise ValueError(f"{method} has no parameter {name!r}; it takes {', '.join(known)}.")
    offered = {"random_state": seed, "verbose": int(progress)}
    params = {name: value for name, value in offered.items() if name in known} | params
    if not paper:
        return hasher_class(n_bits, **params)
    if not hasattr(hasher_class, "paper"):
        raise ValueError(f"--paper names settings of StarSHL, and the method is {method}. Leave one of them out.")
    return hasher_class.paper(n_bits, **params)


def _parse_settings(settings: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise ValueError(f"--set got {setting!r}; write it as NAME=VALUE, for example --set tol=0.01.")
        try:
            found[name] = _PYTHON_WORDS[text] if text in _PYTHON_WORDS else json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def read_training_rows(
    source: Path, labels: str | None, no_labels: bool, drop: list[str] | None, vectors: str | None = None
) -> tuple[Table, np.ndarray | None]:
    """Read rows, and labels from the same file or from one of their own."""
    from .io import READABLE, read_labels, read_rows

    if labels is not None and no_labels:
        raise ValueError("--labels and --no-labels contradict each other. Leave one of them out.")
    label_file = Path(labels) if labels is not None else None
    if label_file is not None and label_file.suffix.lower() in READABLE and label_file.is_file():
        return read_rows(source, drop=drop, vectors=vectors), read_labels(label_file)
    table = read_rows(source, labels=labels, drop=drop, vectors=vectors)
    return table, None if no_labels else table.y
