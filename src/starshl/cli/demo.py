"""``starshl demo``: retrieval on the digits inside scikit-learn, with all labels, with five per class and with none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Jobs, print_json, print_table
from .outputs import check_output_folder

if TYPE_CHECKING:
    import numpy as np

    from ..codes import BinaryCodes
    from ..evaluation import RecordFolder
    from ..evaluation.runner import Encoder

__all__ = ["compare_on_digits", "demo"]

N_QUERIES = 597
LABELS_PER_CLASS = 5
N_NEIGHBORS = 10
N_DRAWN = 4
N_REPORTED_RUNS = 2
N_CLASSES = 10

_SOME_LABELS = f"{LABELS_PER_CLASS} per class"

# Labels that are known, and a key of the line-up.
_COMPARED_METHODS = (
    ("none", "lsh"),
    ("none", "itq"),
    (_SOME_LABELS, "starshl-labeled"),
    (_SOME_LABELS, "starshl"),
    (_SOME_LABELS, "starshl-graph"),
    ("all", "starshl"),
)

Bits = Annotated[int, typer.Option("--bits", "-b", metavar="N", help="Length of the codes.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Draws queries, hidden labels and starts.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for run records and the report.")]


def demo(
    bits: Bits = 16,
    seed: Seed = 0,
    output: Output = Path("starshl-demo"),
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Learn codes for handwritten digits, compare with two baselines, and report on the paper's comparison with them.

    Takes less than a minute and downloads nothing.
    """
    check_output_folder(output)
    comparison = compare_on_digits(bits, seed=seed, jobs=jobs, announce=lambda text: typer.echo(text, err=True))
    comparison["report"] = str(report_on_digits(bits, output, jobs=jobs))
    if as_json:
        print_json(comparison)
    else:
        _print_results(comparison)


def compare_on_digits(
    n_bits: int, *, seed: int = 0, jobs: int | None = None, announce: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Fit each method, then search the training rows for queries that no method has seen.

    Precision at 10 is the share of a query's ten nearest database codes whose image shows its digit, averaged
    over all orders of codes at equal distance.
    """
    import numpy as np
    from sklearn.datasets import load_digits

    from ..base import BaseHasher
    from ..paper.lineup import LINEUP, Sizes

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    queries, database = order[:N_QUERIES], order[N_QUERIES:]
    announce("compiling loops, which takes some seconds the first time")
    _compile_loops(X[:40], y[:40])
    results = []
    labels = {"none": None, _SOME_LABELS: _hide_labels(y[database], rng), "all": y[database]}
    for known, key in _COMPARED_METHODS:
        announce(f"learning: {LINEUP[key].title}, labels: {known}")
        hasher = LINEUP[key].build(n_bits, seed, Sizes(len(database), N_CLASSES))
        if isinstance(hasher, BaseHasher):
            hasher.n_jobs = jobs
        fitted = _fit(hasher, X[database], labels[known], LINEUP[key].fit_on)
        result, codes_query, codes_database = _measure(*fitted, X, y, queries, database)
        results.append({"labels": known, "method": LINEUP[key].title} | result)
    nearest = np.argsort(codes_query[0].distances(codes_database)[0], kind="stable")[:N_DRAWN]
    return {
        "data": "digits",
        "n_bits": n_bits,
        "n_queries": len(queries),
        "n_database": len(database),
        "bytes_per_image_raw": X.shape[1],
        "seed": seed,
        "results": results,
        # Positions in scikit-learn's digits.
        "query": int(queries[0]),
        "nearest": database[nearest].tolist(),
    }


def report_on_digits(n_bits: int, output: Path, *, jobs: int | None = None) -> Path:
    """Run the paper's comparison on a few hundred digits, with all methods, and return the page about it."""
    from ..evaluation import SummaryFolder, execute
    from ..paper import figure, make_plan, write_report
    from ..paper.label_curve import measure_digits
    from .reproduce import telling_progress

    plan = make_plan([figure("digits")], bits=[n_bits], n_runs=N_REPORTED_RUNS, quick=True)
    folder = _records_folder(output)
    with telling_progress() as report:
        execute(plan.runs, folder, SummaryFolder(folder.path / "summaries"), n_jobs=jobs, report=report)
    measure_digits(folder.path, n_jobs=jobs)
    return write_report(folder.path, output, n_jobs=jobs).page


def _records_folder(output: Path) -> RecordFolder:
    from ..evaluation import RecordFolder

    return RecordFolder(output / "records")


def _compile_loops(X: np.ndarray, y: np.ndarray) -> None:
    """Fit and encode a few rows, so that no method's time includes compiling, which happens once."""
    from ..kernels import GraphGaussian
    from ..models import StarSHL

    for kernels in ("scaled", [GraphGaussian()]):
        StarSHL(4, kernels=kernels, random_state=0).fit(X, y).encode(X)


def _hide_labels(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    few = np.full_like(y, -1)
    for label in np.unique(y):
        kept = rng.choice(np.flatnonzero(y == label), LABELS_PER_CLASS, replace=False)
        few[kept] = label
    return few


def _fit(hasher: Encoder, X: np.ndarray, y: np.ndarray | None, fit_on: str) -> tuple[Encoder, float]:
    """Fit a hasher, on the labeled rows alone if ``fit_on`` says so, and return it with the seconds it took."""
    from time import perf_counter

    if fit_on == "labeled" and y is not None:
        X, y = X[y >= 0], y[y >= 0]
    start = perf_counter()
    hasher.fit(X, y)
    return hasher, perf_counter() - start


def _measure(
    hasher: Encoder, seconds: float, X: np.ndarray, y: np.ndarray, queries: np.ndarray, database: np.ndarray
) -> tuple[dict[str, Any], BinaryCodes, BinaryCodes]:
    from ..evaluation import precision_at

    codes_query, codes_database = hasher.encode(X[queries]), hasher.encode_database(X[database], None)
    result = {
        "precision_at_10": precision_at(codes_query, codes_database, y[queries], y[database], N_NEIGHBORS),
        "accuracy": hasher.score(X[queries], y[queries]) if hasattr(hasher, "score") else None,
        "bytes_per_image": codes_query.packed.shape[1],
        "fit_seconds": round(seconds, 2),
    }
    return result, codes_query, codes_database


def _print_results(comparison: dict[str, Any]) -> None:
    from sklearn.datasets import load_digits

    from ._pictures import draw_side_by_side

    columns = ["labels", "method", "P@10", "accuracy", "bytes", "fit [s]"]
    rows = [
        [
            result["labels"],
            result["method"],
            f"{result['precision_at_10']:.3f}",
            "-" if result["accuracy"] is None else f"{result['accuracy']:.3f}",
            str(result["bytes_per_image"]),
            f"{result['fit_seconds']:.1f}",
        ]
        for result in comparison["results"]
    ]
    typer.echo(
        f"Digits: {comparison['n_queries']} queries among {comparison['n_database']} images, "
        f"codes of {comparison['n_bits']} bits; "
        f"an image itself takes {comparison['bytes_per_image_raw']} bytes.\n"
        "P@10: share of the ten nearest codes whose images show the digit of the query."
    )
    print_table(columns, rows, right=("P@10", "accuracy", "bytes", "fit [s]"))
    typer.echo(
        "With few labels, an unlabeled image takes the code of the class that is nearest at first. A wrong code then\n"
        "looks as certain as a right one, so P@10 can fall while accuracy rises. The graph kernel improves both.\n"
    )
    digits = load_digits()
    shown = [comparison["query"], *comparison["nearest"]]
    captions = ["query", *("nearest: " + str(digits.target[row]) for row in comparison["nearest"])]
    typer.echo("A query and its nearest images, by the codes of the last row:\n")
    typer.echo(draw_side_by_side(digits.images[shown] / 16, captions))
    typer.echo(f"\nReport of all methods, with charts and pictures: {comparison['report']}")
    typer.echo(
        "Try next: starshl fit YOUR.csv --labels COLUMN -o model.star  (leave unknown labels empty; "
        "few known: --kernels graph)"
    )
