"""``starshl fit``: learn hash functions from a table and write a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .hashers import make_hasher, parse_settings, with_steps
from .options import (
    AsJson,
    Bits,
    Drop,
    Input,
    Jobs,
    Labels,
    MethodName,
    NoLabels,
    Progress,
    Seed,
    Vectors,
    print_json,
    progress_shown,
    split_names,
)
from .outputs import check_output
from .rows import RowOptions, label_file, read_rows

if TYPE_CHECKING:
    from ..base import BaseHasher
    from ..tables import Table

__all__ = ["fit", "fit_model"]

Output = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")]
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
Scale = Annotated[
    bool, typer.Option("--scale", help="Bring every column of numbers to mean 0 and standard deviation 1.")
]
Impute = Annotated[
    bool,
    typer.Option("--impute", help="Fill missing numbers with the median of their column, categories with the mode."),
]
Text = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Make features of the words in this column; other columns of text become categories.",
    ),
]


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
    scale: Scale = False,
    impute: Impute = False,
    text: Text = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Learn hash functions from rows and write a model file.

    All rows may be labeled, some, or none: StarSHL then learns from labels, from both kinds of rows, or clusters.
    Preprocessing (--scale, --impute, --text) is part of the model: later commands take the same kind of table.
    """
    check_output(output, [input, label_file(labels)])
    params = {"kernels": kernels, "C": cost, "n_codewords": n_codewords, "n_jobs": jobs}
    params = {name: value for name, value in params.items() if value is not None} | parse_settings(settings)
    hasher = make_hasher(method, bits, params, paper=paper, seed=seed, progress=progress_shown(progress))
    if text is not None and vectors is not None:
        raise ValueError("--text and --vectors contradict each other. Leave one of them out.")
    options = RowOptions(labels, no_labels, vectors, drop=split_names(drop), raw=text is not None, allow_missing=impute)
    table = read_rows(input, options)
    hasher = with_steps(hasher, table, scale=scale, impute=impute, text=text)
    summary = fit_model(hasher, table, output)
    if as_json:
        print_json(summary)
        return
    label_origin = f" by {table.label_column}" if labels is None and table.label_column else ""
    labeled = f"{summary['n_labeled']:,} of {summary['n_rows']:,} rows labeled{label_origin}"
    origin = f" in {summary['vectors']}" if summary["vectors"] else ""
    typer.echo(
        f"{summary['method']} learned {summary['n_bits']} bits from {summary['n_features']} features{origin}, "
        f"{labeled}, in {summary['seconds']:.1f} s: {summary['model']} ({summary['file_bytes']:,} bytes)"
    )


def fit_model(hasher: BaseHasher, table: Table, output: Path) -> dict[str, Any]:
    """Fit a hasher and save it; return what `--json` prints."""
    from time import perf_counter

    import numpy as np

    from .._validation import check_labels
    from ..features import PreparedHasher

    start = perf_counter()
    hasher.fit(table.X, table.y)
    seconds = perf_counter() - start
    # How the fit was run is not part of the model: the file is the same for any number of threads.
    as_run = {"verbose": 0, "n_jobs": None}
    # The hasher inside, if there is preprocessing.
    learner = hasher.hasher_ if isinstance(hasher, PreparedHasher) else hasher
    learner.set_params(**{name: value for name, value in as_run.items() if name in learner.get_params()})
    if table.feature_names is not None:
        # A later table may then have its columns in any order, and more of them.
        hasher.feature_names_in_ = np.array(table.feature_names, dtype=object)
    hasher.save(output)
    n_rows = table.X.shape[-2]
    objective = getattr(learner, "objective_history_", None)
    return {
        "model": str(output),
        "method": type(learner).__name__,
        "steps": [type(step).__name__ for step in getattr(hasher, "steps_", ())],
        "n_bits": hasher.n_bits_,
        "n_rows": n_rows,
        "n_labeled": int(check_labels(table.y, n_rows).labeled.sum()),
        "labels": table.label_column,
        "n_features": table.X.shape[-1],
        "vectors": table.vectors,
        "seconds": round(seconds, 3),
        "file_bytes": output.stat().st_size,
        "n_iter": getattr(learner, "n_iter_", None),
        "objective": None if objective is None else objective[-1],
        "classes": getattr(hasher, "classes_", None),
    }
