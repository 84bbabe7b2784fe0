"""``starshl demo``: retrieval on the digits inside scikit-learn, with all labels, with five per class and with none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Jobs, print_json, print_table
from .outputs import check_output_folder

if TYPE_CHECKING:
    import numpy as np

    from ..codes import BinaryCodes
    from ..evaluation import RecordFolder

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
    ("all", "starshl"),
    ("all", "starridge"),
    (_SOME_LABELS, "starshl-labeled"),
    (_SOME_LABELS, "starridge-labeled"),
    (_SOME_LABELS, "starshl"),
    (_SOME_LABELS, "starridge"),
)
# Whose nearest images are drawn.
_DRAWN = ("all", "starridge")

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
    """Learn codes for handwritten digits with all labels and with five per class, and report on all methods.

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
        task = _Task(X[database], y[database], labels[known], X[queries], y[queries], LINEUP[key].fit_on)
        result, codes_query, codes_database = task.measure(hasher)
        results.append({"labels": known, "method": LINEUP[key].title} | result)
        if (known, key) == _DRAWN:
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
    import numpy as np

    from ..models import StarRidge, StarSHL

    few = np.where(np.arange(len(y)) < len(y) // 2, y, -1)
    for hasher in (StarSHL(4, random_state=0), StarRidge(4, random_state=0)):
        hasher.fit(X, y).encode(X)
        hasher.fit(X, few).encode(X)


def _hide_labels(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    few = np.full_like(y, -1)
    for label in np.unique(y):
        kept = rng.choice(np.flatnonzero(y == label), LABELS_PER_CLASS, replace=False)
        few[kept] = label
    return few


@dataclass(frozen=True, slots=True)
class _Task:
    """Rows to learn from and to search, the labels that are known of them, and queries."""

    X: np.ndarray
    y: np.ndarray
    known: np.ndarray | None
    X_query: np.ndarray
    y_query: np.ndarray
    fit_on: str

    def measure(self, hasher: Any) -> tuple[dict[str, Any], BinaryCodes, BinaryCodes]:
        """Fit a hasher; return its figures and the codes of queries and database."""
        from ..evaluation import precision_at

        seconds = self._fit(hasher)
        codes_query, codes_database = hasher.encode(self.X_query), self._database_codes(hasher)
        result = {
            "precision_at_10": precision_at(codes_query, codes_database, self.y_query, self.y, N_NEIGHBORS),
            "accuracy": hasher.score(self.X_query, self.y_query) if hasattr(hasher, "score") else None,
            "accuracy_unlabeled": self._accuracy_on_unlabeled(hasher),
            "bytes_per_image": codes_query.packed.shape[1],
            "fit_seconds": round(seconds, 2),
            "choice": getattr(hasher, "choice_", None),
        }
        return result, codes_query, codes_database

    def _fit(self, hasher: Any) -> float:
        """Fit a hasher, on the labeled rows alone if ``fit_on`` says so, and return the seconds it took."""
        from time import perf_counter

        X, y = self.X, self.known
        if self.fit_on == "labeled" and y is not None:
            X, y = X[y >= 0], y[y >= 0]
        start = perf_counter()
        hasher.fit(X, y)
        return perf_counter() - start

    def _database_codes(self, hasher: Any) -> BinaryCodes:
        from ..evaluation.items import codes_of_training_rows

        if self.fit_on == "labeled":
            return hasher.encode_database(self.X, self.known)
        return codes_of_training_rows(hasher, self.X, self.known)

    def _accuracy_on_unlabeled(self, hasher: Any) -> float | None:
        """Return the accuracy on database rows whose labels were hidden, None if none were."""
        if self.known is None or not hasattr(hasher, "predict") or (self.known >= 0).all():
            return None
        hidden = self.known < 0
        predicted = hasher.predict(self.X) if self.fit_on == "labeled" else hasher.transduction_
        return float((predicted[hidden] == self.y[hidden]).mean())


# Title of a column -> its cell.
_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "labels": lambda result: result["labels"],
    "method": lambda result: result["method"],
    "P@10": lambda result: _share(result["precision_at_10"]),
    "accuracy": lambda result: _share(result["accuracy"]),
    "bytes": lambda result: str(result["bytes_per_image"]),
    "fit [s]": lambda result: f"{result['fit_seconds']:.1f}",
}
_COLUMNS_OF_FEW: dict[str, Callable[[dict[str, Any]], str]] = {
    "method": _COLUMNS["method"],
    "unlabeled": lambda result: _share(result["accuracy_unlabeled"]),
    "new": _COLUMNS["accuracy"],
    "P@10": _COLUMNS["P@10"],
    "fit [s]": _COLUMNS["fit [s]"],
}


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_figures(
    results: list[dict[str, Any]], columns: dict[str, Callable[[dict[str, Any]], str]], title: str | None
) -> None:
    rows = [[cell(result) for cell in columns.values()] for result in results]
    right = tuple(name for name in columns if name not in ("labels", "method"))
    print_table(list(columns), rows, right=right, title=title)


def _print_results(comparison: dict[str, Any]) -> None:
    from sklearn.datasets import load_digits

    from ._pictures import draw_side_by_side

    typer.echo(
        f"Digits: {comparison['n_queries']} queries among {comparison['n_database']} images, "
        f"codes of {comparison['n_bits']} bits; "
        f"an image itself takes {comparison['bytes_per_image_raw']} bytes.\n"
        "P@10: share of the ten nearest codes whose images show the digit of the query."
    )
    results = comparison["results"]
    few = [result for result in results if result["labels"] == _SOME_LABELS]
    _print_figures([result for result in results if result not in few], _COLUMNS, title=None)
    _print_figures(
        few,
        _COLUMNS_OF_FEW,
        title=f"{LABELS_PER_CLASS} labels per class: accuracy on unlabeled and on new images, P@10 of new images",
    )
    for result in few:
        if result["choice"] and "labeled rows only" not in result["method"]:
            typer.echo(f"{result['method']} chose: {result['choice']}")
    typer.echo()
    digits = load_digits()
    shown = [comparison["query"], *comparison["nearest"]]
    captions = ["query", *("nearest: " + str(digits.target[row]) for row in comparison["nearest"])]
    typer.echo("A query and its nearest images, by the codes of StarRidge with all labels:\n")
    typer.echo(draw_side_by_side(digits.images[shown] / 16, captions))
    typer.echo(f"\nReport of all methods, with charts and pictures: {comparison['report']}")
    typer.echo("Try next: starshl fit YOUR.csv --labels COLUMN -o model.star  (leave unknown labels empty)")
