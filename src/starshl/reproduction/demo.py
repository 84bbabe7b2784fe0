"""The demonstration: hash the digits inside scikit-learn with all labels, with five per class and with none.

Its page shows retrieved images first, then what a few labels are worth, then curves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from .._common.files import write_atomically
from .._version import __version__
from ..codes.binary import BinaryCodes
from ..evaluation.metrics import precision_at
from ..evaluation.reports.document import Block, Chart, Commands, Document, Pictures, Section, Series, Table, Text
from ..evaluation.reports.html import render_page
from ..hashers.base import BaseHasher
from ..hashers.fitting import fit_lengths
from ..hashers.star.star_ridge import StarRidge
from ..hashers.star.star_shl import StarSHL
from .compared_methods import COMPARED_METHODS, Sizes
from .executor import Clock

Announce = Callable[[str], None]
N_IMAGES, N_QUERIES = 1797, 597
LABELS_PER_CLASS = 5
N_NEIGHBORS = 10
N_CLASSES = 10
CURVE_LENGTHS = (4, 8, 16, 32)
SOME_LABELS = f"{LABELS_PER_CLASS} per class"
# Labels that are known, and the key of a compared method; processor seconds of one core, measured, for the estimate of
# the time that is left.
_COMPARED: dict[tuple[str, str], float] = {
    ("none", "lsh"): 0.1,
    ("none", "itq"): 0.05,
    ("all", "starshl"): 1.9,
    ("all", "starridge"): 1.15,
    (SOME_LABELS, "svc"): 0.05,
    (SOME_LABELS, "starshl-labeled"): 0.1,
    (SOME_LABELS, "starridge-labeled"): 0.15,
    (SOME_LABELS, "starshl"): 2.0,
    (SOME_LABELS, "starridge"): 0.6,
}
_CURVES: dict[tuple[str, str], float] = {
    ("all", "starridge"): 1.3,
    ("all", "starshl"): 6.9,
    ("all", "ksh"): 3.2,
    ("none", "itq"): 0.05,
    ("none", "lsh"): 0.02,
}
# Whose retrieved images are shown, in this order.
_SHOWN = (("all", "starridge"), (SOME_LABELS, "starridge"), ("none", "itq"), ("none", "lsh"))
_SHOWN_ORDER = {(known, COMPARED_METHODS[key].title): place for place, (known, key) in enumerate(_SHOWN)}
_EFFORT_OF_GUESS = 0.5  # less than that of a task that tells something
_N_PICTURED_QUERIES = 4
# Commands for a reader's own data, and what each does.
NEXT_STEPS = (
    ("starshl fit table.csv --labels COLUMN -o model.star", "a model; leave unknown labels empty"),
    ("starshl vectors embeddings.npy -o items", "a collection to search; --labels FILE if you have some"),
    ("starshl images FOLDER -o album", "the same for pictures"),
    ("starshl explore album", "look at it, and teach it, in a browser"),
)
_TITLE = "Handwritten digits as short codes"
_LABELS = {"all": "all labels", SOME_LABELS: f"{LABELS_PER_CLASS} labels per class", "none": "no labels"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a method retrieves for each query: rows of the digits, nearest first, shape (n_queries, n_neighbors)."""

    labels: str
    title: str
    nearest: np.ndarray


@dataclass(slots=True)
class Demonstration:
    """What was measured.

    Attributes
    ----------
    n_bits, seed : int
    queries, database : arrays of rows of the digits
    results : list of dict
        The figures of each method, in the order of the table.
    shown : list of Shown
    curves : dict
        (labels, title) -> number of bits -> P@10.
    """

    n_bits: int
    seed: int
    queries: np.ndarray
    database: np.ndarray
    results: list[dict[str, Any]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    curves: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)


def demonstrate(
    n_bits: int, *, seed: int = 0, jobs: int | None = None, announce: Announce = lambda text: None
) -> Demonstration:
    """Fit each method, then search the training rows for queries that no method has seen.

    Precision at 10 is the share of a query's ten nearest database codes whose image shows its digit, averaged over all
    orders of codes at equal distance.
    """
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    found = Demonstration(n_bits, seed, order[:N_QUERIES], order[N_QUERIES:])
    labels = {"none": None, SOME_LABELS: hide_labels(y[found.database], rng), "all": y[found.database]}
    announce("compiling loops, which takes about 20 s the first time")
    with_progress = _Progress(announce, _slowness_of(lambda: _compile_loops(X[:40], y[:40])))
    for known, key in with_progress(_COMPARED):
        task = _task(X, y, found, labels[known], key)
        if (make := COMPARED_METHODS[key].make) is not None:
            result, codes = task.measure_classifier(make(seed)), None
        else:
            result, codes = task.measure(_build(key, n_bits, seed, jobs))
        found.results.append({"labels": known, "method": COMPARED_METHODS[key].title} | result)
        if codes is not None and (known, key) in _SHOWN:
            codes_query, codes_database = codes
            nearest = codes_query.distances(codes_database).argsort(axis=1, kind="stable")[:, :N_NEIGHBORS]
            found.shown.append(Shown(known, COMPARED_METHODS[key].title, found.database[nearest]))
    found.shown.sort(key=lambda shown: _SHOWN_ORDER[shown.labels, shown.title])
    for known, key in with_progress(_CURVES):
        task = _task(X, y, found, labels[known], key)
        found.curves[known, COMPARED_METHODS[key].title] = task.curve(
            _build(key, CURVE_LENGTHS[0], seed, jobs), CURVE_LENGTHS
        )
    return found


class _Progress:
    """Announces each task and about how long the rest will take.

    ``slowness``, the seconds that a processor second takes on this machine, is a first guess, soon outweighed by what
    the tasks themselves take.
    """

    def __init__(self, announce: Announce, slowness: float):
        self.announce = announce
        # Methods with labels are slower on a slower machine by the same factor, so one kind is enough.
        efforts = {"guess": _EFFORT_OF_GUESS}
        efforts |= {str(("compared", *place)): effort for place, effort in _COMPARED.items()}
        efforts |= {str(("curve", *place)): effort for place, effort in _CURVES.items()}
        self.clock = Clock({name: (("fit",), effort) for name, effort in efforts.items()})
        self.clock.note("guess", slowness * _EFFORT_OF_GUESS)

    def __call__(self, places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        stage = "compared" if places is _COMPARED else "curve"
        for place in places:
            known, key = place
            what = "learning" if stage == "compared" else f"{len(CURVE_LENGTHS)} lengths"
            left = max(1, round(self.clock.seconds_left()))
            self.announce(f"{what}: {COMPARED_METHODS[key].title}, labels: {known} (about {left} s left)")
            start = perf_counter()
            yield place
            self.clock.note(str((stage, *place)), perf_counter() - start)


def _slowness_of(work: Callable[[], None]) -> float:
    """Do some work on one core; return seconds per processor second: 1, or more if others use the processor, too."""
    start, start_of_processor = perf_counter(), process_time()
    work()
    return (perf_counter() - start) / max(process_time() - start_of_processor, 1e-3)


def _build(key: str, n_bits: int, seed: int, jobs: int | None) -> BaseHasher:
    hasher = COMPARED_METHODS[key].build(n_bits, seed, Sizes(N_IMAGES - N_QUERIES, N_CLASSES))
    hasher.n_jobs = jobs
    return hasher


def _compile_loops(X: np.ndarray, y: np.ndarray) -> None:
    """Fit and encode a few rows, so that no method's time includes compiling, which happens once."""
    few = np.where(np.arange(len(y)) < len(y) // 2, y, -1)
    for hasher in (StarSHL(4, random_state=0), StarRidge(4, random_state=0)):
        hasher.fit(X, few).encode(X)
        codes = hasher.fit(X, y).encode(X)
    precision_at(codes, codes, y, y, N_NEIGHBORS)


def hide_labels(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the labels with all but a few per class replaced by -1."""
    few = np.full_like(y, -1)
    for label in np.unique(y):
        kept = rng.choice(np.flatnonzero(y == label), LABELS_PER_CLASS, replace=False)
        few[kept] = label
    return few


def _task(X: np.ndarray, y: np.ndarray, found: Demonstration, known: np.ndarray | None, key: str) -> _Task:
    queries, database = found.queries, found.database
    return _Task(X[database], y[database], known, X[queries], y[queries], COMPARED_METHODS[key].fit_on)


@dataclass(frozen=True, slots=True)
class _Task:
    """Rows to learn from and to search, the labels that are known of them, and queries."""

    X: np.ndarray
    y: np.ndarray
    known: np.ndarray | None
    X_query: np.ndarray
    y_query: np.ndarray
    fit_on: str

    def measure(self, hasher: BaseHasher) -> tuple[dict[str, Any], tuple[BinaryCodes, BinaryCodes]]:
        """Fit a hasher; return its figures and the codes of queries and database."""
        seconds = self._fit(hasher)
        codes = hasher.encode(self.X_query), self._database_codes(hasher)
        result = {
            "precision_at_10": precision_at(*codes, self.y_query, self.y, N_NEIGHBORS),
            "accuracy": hasher.score(self.X_query, self.y_query) if "score" in hasher.supports else None,
            "accuracy_unlabeled": self._accuracy_on_unlabeled(hasher) if "predict" in hasher.supports else None,
            "bytes_per_image": codes[0].packed.shape[1],
            "fit_seconds": seconds,
            "choice": hasher.fit_summary.choice,
        }
        return result, codes

    def measure_classifier(self, classifier: Any) -> dict[str, Any]:
        """Fit a classifier of scikit-learn; return its figures, which are not about codes."""
        seconds = self._fit(classifier)
        return {
            "precision_at_10": None,
            "accuracy": classifier.score(self.X_query, self.y_query),
            "accuracy_unlabeled": self._accuracy_on_unlabeled(classifier),
            "bytes_per_image": None,
            "fit_seconds": seconds,
            "choice": None,
        }

    def _fit(self, learner: Any) -> float:
        """Fit a hasher or a classifier; return how many seconds it took."""
        X, y = self._rows_to_fit()
        start = perf_counter()
        learner.fit(X, y)
        return round(perf_counter() - start, 2)

    def curve(self, hasher: BaseHasher, lengths: tuple[int, ...]) -> dict[int, float]:
        """Return P@10 by length; the given hasher has the first one."""
        fitted = zip(lengths, fit_lengths(hasher, *self._rows_to_fit(), lengths), strict=True)
        return {n_bits: self._precision(one) for n_bits, one in fitted}

    def _precision(self, hasher: BaseHasher) -> float:
        codes_query, codes_database = hasher.encode(self.X_query), self._database_codes(hasher)
        return precision_at(codes_query, codes_database, self.y_query, self.y, N_NEIGHBORS)

    def _rows_to_fit(self) -> tuple[np.ndarray, np.ndarray | None]:
        X, y = self.X, self.known
        return (X[y >= 0], y[y >= 0]) if self.fit_on == "labeled" and y is not None else (X, y)

    def _database_codes(self, hasher: BaseHasher) -> BinaryCodes:
        if self.fit_on == "labeled":
            return hasher.encode_database(self.X, self.known)
        return hasher.encode_training(self.X, self.known)

    def _accuracy_on_unlabeled(self, learner: Any) -> float | None:
        """Return the accuracy on database rows whose labels were hidden, None if none were."""
        if self.known is None or (self.known >= 0).all():
            return None
        hidden = self.known < 0
        predicted = learner.predict(self.X) if self.fit_on == "labeled" else learner.transduction_
        return float((predicted[hidden] == self.y[hidden]).mean())


def write_demo_page(found: Demonstration, output: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` to a folder, which is created if absent, and return its path."""
    target = Path(output)
    target.mkdir(parents=True, exist_ok=True)
    sections = [_pictures(found), _few_labels(found), _all_labels(found), _curves(found), _next_steps()]
    subtitle = (
        f"{len(found.queries)} queries, which no method has seen, among {len(found.database):,} images. "
        f"Each image becomes a code of {found.n_bits} bits, and the nearest codes are what a query finds. "
        f"starshl {__version__}, measured on this machine just now."
    )
    page = target / "report.html"
    write_atomically(page, render_page(Document(_TITLE, subtitle, sections)).encode())
    return page


def _pictures(found: Demonstration) -> Section:
    digits = load_digits()
    images = np.round(255 * digits.images / digits.images.max()).astype(np.uint8)
    blocks: list[Block] = [
        Text(
            (
                "Left, a query; right, the ten images with the nearest codes. A dashed frame marks another digit than "
                "the query's. Each query is the first of its digit for which ITQ, which has no labels, errs.",
            )
        )
    ]
    for place in _chosen_queries(found, digits.target):
        query = found.queries[place]
        rows = tuple(
            (
                f"{shown.title}, {_LABELS[shown.labels]}",
                tuple(images[row] for row in shown.nearest[place]),
                tuple((digits.target[shown.nearest[place]] == digits.target[query]).tolist()),
            )
            for shown in found.shown
        )
        blocks.append(Pictures(f"A query: {digits.target[query]}", images[query], rows))
        blocks.append(Text(explain_example(found, place, digits.target)))
    return Section("What a query finds", "pictures", blocks)


def explain_example(found: Demonstration, place: int, target: np.ndarray) -> tuple[str, ...]:
    """Say in words what the methods found for a query, and why one with labels may find less than one without."""
    digit = target[found.queries[place]]
    right = [int((target[shown.nearest[place]] == digit).sum()) for shown in found.shown]
    names = [f"{shown.title} with {_LABELS[shown.labels]}" for shown in found.shown]
    parts = ", ".join(f"{n_right} by {name}" for n_right, name in zip(right, names, strict=True))
    lines = [f"Of {N_NEIGHBORS}, so many show {_a(digit)}: {parts}."]
    taught = [number for number, shown in enumerate(found.shown) if shown.labels != "none"]
    worst = min(taught, key=right.__getitem__)
    taken_for = _most_frequent(target[found.shown[worst].nearest])
    if right[worst] < max(right) and taken_for[place] != digit:
        share = (taken_for != target[found.queries]).mean()
        lines.append(
            "A code that labels have taught finds the digit that it takes the query for, so nearly all of it is right, "
            f"or nearly all is wrong. {names[worst]} takes this {digit} for {_a(taken_for[place])}; such a mistake "
            f"happens for {share:.1%} of the queries. A code without labels finds what looks alike, whatever it is: "
            "more often wrong, but seldom all wrong."
        )
    return tuple(lines)


def _a(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"


def _most_frequent(digits: np.ndarray) -> np.ndarray:
    """Return the most frequent digit in each row."""
    return np.array([np.bincount(row, minlength=N_CLASSES).argmax() for row in digits])


def _chosen_queries(found: Demonstration, target: np.ndarray) -> list[int]:
    """Return the first query of each of some digits for which the codes without labels make a mistake."""
    plain = next(shown for shown in found.shown if shown.labels == "none")
    wrong = (target[plain.nearest] != target[found.queries][:, None]).any(axis=1)
    first: dict[int, int] = {}
    for place in np.flatnonzero(wrong).tolist():
        first.setdefault(int(target[found.queries[place]]), place)
    return list(first.values())[:_N_PICTURED_QUERIES]


def _few_labels(found: Demonstration) -> Section:
    few = [result for result in found.results if result["labels"] == SOME_LABELS]
    columns = ("method", "accuracy on unlabeled images", "accuracy on new images", "P@10 of new images", "fit, seconds")
    rows = tuple(
        (
            result["method"],
            _share(result["accuracy_unlabeled"]),
            _share(result["accuracy"]),
            _share(result["precision_at_10"]),
            f"{result['fit_seconds']:.1f}",
        )
        for result in few
    )
    lines = (
        f"Only {LABELS_PER_CLASS} images of each digit have a label here, {LABELS_PER_CLASS * 10} of "
        f'{len(found.database):,}. The SVC and the rows named "labeled rows only" learn from those alone. The others '
        "also learn from the unlabeled images, which take their labels from their neighbors.",
        "P@10 is the share of a query's ten nearest codes whose images show its digit. The SVC, scikit-learn's own "
        "with C = 10, has no codes.",
    )
    best = max(range(len(few)), key=lambda number: few[number]["precision_at_10"] or 0.0)
    table = Table(f"{_LABELS[SOME_LABELS]}; best P@10 in bold", columns, rows, frozenset({(best, 3)}))
    return Section(f"With {LABELS_PER_CLASS} labels per class", "few", [Text(lines), table])


def _all_labels(found: Demonstration) -> Section:
    others = [result for result in found.results if result["labels"] != SOME_LABELS]
    rows = tuple(
        (
            f"{result['method']}, {_LABELS[result['labels']]}",
            _share(result["precision_at_10"]),
            _share(result["accuracy"]),
            str(result["bytes_per_image"]),
            f"{result['fit_seconds']:.1f}",
        )
        for result in others
    )
    columns = ("method", "P@10", "accuracy on new images", "bytes per image", "fit, seconds")
    caption = "All labels, or none; an image itself takes 64 bytes"
    return Section("With all labels and with none", "all", [Table(caption, columns, rows)])


def _curves(found: Demonstration) -> Section:
    series = tuple(
        Series(
            f"{title}, {_LABELS[labels]}",
            tuple(map(float, by_length)),
            tuple(by_length.values()),
            emphasized=title == "StarRidge",
        )
        for (labels, title), by_length in found.curves.items()
    )
    ticks = tuple(float(n_bits) for n_bits in next(iter(found.curves.values()), {}))
    chart = Chart("P@10 over the length of the codes", "bits", "P@10", series, ticks)
    reading = "One draw of queries, so differences of a few thousandths mean nothing."
    return Section("Shorter and longer codes", "curves", [chart, Text((reading,))])


def _next_steps() -> Section:
    return Section("Try next, on your own data", "next", [Commands(NEXT_STEPS)])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
