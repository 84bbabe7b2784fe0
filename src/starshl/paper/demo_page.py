"""The page of the demonstration: retrieved images first, then what a few labels are worth, then curves."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from .. import __version__
from .._files import write_atomically
from ..reports.document import Block, Chart, Commands, Document, Pictures, Section, Series, Table, Text
from ..reports.page import render_page
from .digits_demo import LABELS_PER_CLASS, SOME_LABELS, Demonstration

__all__ = ["NEXT_STEPS", "write_demo_page"]

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
    return Section("What a query finds", "pictures", blocks)


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
