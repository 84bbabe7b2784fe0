"""``starshl fit``: learn hash functions from a table and write a model file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .cluster import Cluster, fit_on_cluster, refuse_steps
from .hashers import (
    StepOptions,
    choose_method,
    make_hasher,
    model_files,
    parse_lengths,
    parse_settings,
    save_together,
    with_steps,
)
from .options import (
    AsJson,
    Decimal,
    Drop,
    Jobs,
    Labels,
    NoLabels,
    Progress,
    Seed,
    Source,
    Vectors,
    check_output,
    print_json,
    progress_shown,
)
from .rows import is_in_file, label_file, local_files, read_partitions, read_rows, row_columns

if TYPE_CHECKING:
    from ..data.tables.reading import Table
    from ..hashers.base import BaseHasher

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="MODEL",
        help="Model file to write. With several lengths, the length goes before the suffix: model.8.star, "
        "model.16.star, ...",
    ),
]
Lengths = Annotated[
    str,
    typer.Option(
        "--bits",
        "-b",
        metavar="N,N,...",
        help="Length of the codes, or several lengths: one model file each, all of them or none.",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A method from `starshl methods`. By default, StarRidge, or StarSHL if you use an option that only "
        "StarSHL has.",
    ),
]
Kernels = Annotated[
    str | None,
    typer.Option(
        "--kernels",
        metavar="WORD",
        help="rich (default of StarRidge), scaled (default of StarSHL), paper, precomputed (INPUT holds kernel "
        "values), or graph (StarSHL: a Gaussian bent by the neighbor graph of all rows).",
    ),
]
Cost = Annotated[
    float | None, typer.Option("--C", metavar="X", help="How much the losses count compared with the norms (StarSHL).")
]
Codewords = Annotated[
    int | None, typer.Option("--n-codewords", metavar="N", help="Number of clusters if no row has a label.")
]
Unlabeled = Annotated[
    str | None,
    typer.Option(
        "--unlabeled",
        metavar="WORD",
        help="How to use rows without a label if others have one: graph (default; through the neighbor graph of all "
        "rows, as far as left-out labels agree with it), ignore (StarRidge), or nearest (StarSHL: the paper's mode).",
    ),
]
Paper = Annotated[bool, typer.Option("--paper", help="Use the settings of the paper (StarSHL only).")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the method; may be repeated."),
]
Scale = Annotated[
    bool, typer.Option("--scale", help="Scale every column of numbers to mean 0 and standard deviation 1.")
]
Impute = Annotated[
    bool,
    typer.Option(
        "--impute",
        help="Fill missing numbers with the median of their column, and missing categories with the most frequent one.",
    ),
]
Categories = Annotated[bool, typer.Option("--categories", help="Turn columns of text into features, one per category.")]
Text = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Turn the texts in this column into features; other columns of text become categories.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="With --text: what makes features of texts, such as minilm, as for `starshl texts`; by default, 100 "
        "directions of their words.",
    ),
]


def fit(
    input: Source,
    output: Output,
    labels: Labels = None,
    no_labels: NoLabels = False,
    bits: Lengths = "32",
    method: MethodName = None,
    kernels: Kernels = None,
    cost: Cost = None,
    n_codewords: Codewords = None,
    unlabeled: Unlabeled = None,
    paper: Paper = False,
    settings: Setting = None,
    drop: Drop = None,
    decimal: Decimal = None,
    vectors: Vectors = None,
    scale: Scale = False,
    impute: Impute = False,
    categories: Categories = False,
    text: Text = None,
    embedder: Embedder = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    progress: Progress = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Learn hash functions from rows and write a model file.

    With several --bits, there is one file per length. All rows may have a label, or some, or none. The output says
    which columns became numbers, categories and text, and what the fit chose and why. Preprocessing (--scale,
    --impute, --categories, --text) is part of the model: later commands take the same kind of table.

    With --cluster, StarRidge is fitted block by block if there are more than 20,000 rows, and StarSHL bit by bit. Any
    other fit runs on one worker.
    """
    from .._common.progress import showing_progress
    from .._common.threads import using_threads

    lengths = parse_lengths(bits)
    files = model_files(output, lengths)
    sources = [input] if cluster is None else local_files(input)
    for file in files.values():
        check_output(file, [*sources, label_file(labels)])
    params = {"kernels": kernels, "C": cost, "n_codewords": n_codewords, "unlabeled": unlabeled, "n_jobs": jobs}
    params = {name: value for name, value in params.items() if value is not None} | parse_settings(settings)
    steps = StepOptions(scale, impute, categories, text, embedder)
    if steps.read_text and vectors is not None:
        option = "--categories" if text is None else "--text"
        raise ValueError(f"{option} and --vectors contradict each other. Leave one of them out.")
    columns = row_columns(labels, no_labels, vectors=vectors, drop=drop, decimal=decimal)
    columns = replace(columns, raw=steps.read_text, allow_missing=impute, text=text)
    if cluster is None:
        table = read_rows(Path(input), columns, in_place=True)
    else:
        refuse_steps(steps)
        table = read_partitions(input, columns)
    method = method or choose_method(params, paper=paper)
    hasher = make_hasher(method, lengths[0], params, paper=paper, seed=seed, progress=progress_shown(progress))
    hasher = with_steps(hasher, table, steps)
    if cluster is None and is_in_file(table) and not hasher.current_facts.reads_blocks:
        table = read_rows(Path(input), columns)
    with using_threads(jobs), showing_progress(progress_shown(progress)):
        summary = fit_models(hasher, table, files, Path(input), cluster)
    if as_json:
        print_json(summary)
    else:
        typer.echo(_sentences(summary, table, labels_named=labels is not None))


def fit_models(
    hasher: BaseHasher, table: Table, files: dict[int, Path], source: Path, cluster: str | None = None
) -> dict[str, Any]:
    """Fit a hasher at each length, here or on a cluster, and save the models; return what `--json` prints.

    The card of each model names ``source``, the file of the rows, and its hash.
    """
    from time import perf_counter

    from .._common.labels import check_labels
    from ..hashers.columns import describe_columns
    from ..hashers.fitting import fit_lengths, forget_how_it_ran, name_features

    n_rows = table.X.shape[-2]
    labels = check_labels(table.y, n_rows)
    start = perf_counter()
    fitting = {} if cluster is None else {"fit": partial(fit_on_cluster, cluster)}
    y = None if table.y is None else labels
    hashers = list(fit_lengths(hasher, table.X, y, tuple(files), **fitting))
    seconds = perf_counter() - start
    missing = _missing_cells(table)
    about_data = _origin(source) | ({"missing_cells": missing} if missing else {})
    about_data |= {"decimal": table.decimal} if table.decimal != "." else {}
    for each in hashers:
        each.fit_record_ |= about_data
        name_features(each, table.feature_names)
        forget_how_it_ran(each)
    save_together(hashers, list(files.values()))
    models = [_describe(each, file) for each, file in zip(hashers, files.values(), strict=True)]
    return {
        **(models[0] if len(models) == 1 else {}),
        "models": models,
        "method": hashers[0].method_name,
        "choice": hashers[0].fit_summary.choice,
        "steps": [type(step).__name__ for step in hashers[0].fitted_steps],
        "n_rows": n_rows,
        "n_labeled": int(labels.labeled.sum()),
        "labels": table.label_column,
        "n_features": table.X.shape[-1],
        "vectors": table.vectors,
        "columns": describe_columns(hashers[0], missing),
        "seconds": round(seconds, 3),
        "classes": hashers[0].class_labels or None,
    }


def _missing_cells(table: Table) -> dict[str, int]:
    """Return how many cells are missing in each column with a name in which any are."""
    from ..data.features.numeric import is_missing

    if table.feature_names is None or is_in_file(table):
        return {}
    counts = is_missing(table.X).sum(axis=0).tolist()
    return {name: count for name, count in zip(table.feature_names, counts, strict=True) if count}


def _origin(source: Path) -> dict[str, Any]:
    """Return the name and the hash of the file of the rows, nothing if they come from several or from elsewhere."""
    from hashlib import file_digest

    if not source.is_file():
        return {}
    with source.open("rb") as file:
        return {"file": source.name, "file_sha256": file_digest(file, "sha256").hexdigest()}


def _describe(hasher: BaseHasher, file: Path) -> dict[str, Any]:
    summary = hasher.fit_summary
    return {
        "model": str(file),
        "n_bits": hasher.n_bits_,
        "file_bytes": file.stat().st_size,
        "n_iter": summary.n_iter,
        "objective": None if summary.objective is None else summary.objective[-1],
    }


def _sentences(summary: dict[str, Any], table: Table, *, labels_named: bool) -> str:
    """Return what was learned from what, the files, what each column became, and what the fit chose."""
    from ..hashers.columns import columns_sentence

    label_origin = f" by {table.label_column}" if not labels_named and table.label_column else ""
    labeled = f"{summary['n_labeled']:,} of {summary['n_rows']:,} rows labeled{label_origin}"
    origin = f" in {summary['vectors']}" if summary["vectors"] else ""
    lengths = [str(model["n_bits"]) for model in summary["models"]]
    shown = lengths[0] if len(lengths) == 1 else f"{', '.join(lengths[:-1])} and {lengths[-1]}"
    files = [f"{model['model']} ({model['file_bytes']:,} bytes)" for model in summary["models"]]
    learned = (
        f"{summary['method']} learned {shown} bits from {summary['n_features']} features{origin}, {labeled}, "
        f"in {summary['seconds']:.1f} s: {', '.join(files)}"
    )
    columns = f"columns: {columns_sentence(summary['columns'])}" if summary["columns"] else ""
    return "\n".join(line for line in (learned, columns, summary["choice"]) if line)
