"""The comparison as one HTML page, with real queries and what each method finds for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .._files import write_atomically
from .._words import counted
from ..reports.document import Block, Chart, Document, Lists, Pictures, Section, Series, Table, Text
from ..reports.page import render_page
from .comparison import Comparison, LengthComparison
from .figures import COLUMNS
from .questions import Question
from .rows_shown import check_picture_shape, gray_pictures, guess_picture_shape, short_titles

__all__ = ["comparison_page", "write_page"]

_N_TITLES = 5  # texts per method; more would make the page too long to compare
_READING = (
    "Each query was held out: no method has seen it. Lists begin with what is nearest; equal distances are ordered by "
    "the scores of the query."
)
_MARKED_TITLES = "A check mark: the class of the query. A cross: another class. A dash: its class is not known."
_MARKED_PICTURES = "A solid green frame: the class of the query. Dashed: another class. Gray: its class is not known."
_NOTHING_MARKED = "No labels are known, so nothing says which answers are right: judge by eye, against float search."
Titles: TypeAlias = Sequence[object]


def write_page(
    path: str | os.PathLike[str],
    comparison: Comparison,
    X: np.ndarray,
    *,
    titles: Titles | None = None,
    picture_shape: tuple[int, int] | None = None,
) -> None:
    """Write the comparison to an HTML file that needs no network and no other file.

    Parameters
    ----------
    path : path
    comparison : Comparison
    X : array of shape (n_items, n_features)
        The rows that were compared.
    titles : sequence of str, default=None
        A short text for each row, which the page shows.
    picture_shape : (height, width), default=None
        Rows are gray pictures of this shape. None without titles shows rows as square pictures if they look like
        pixels, whole numbers from 0 to 255, and their numbers otherwise.
    """
    document = comparison_page(comparison, np.asarray(X), titles=titles, picture_shape=picture_shape)
    write_atomically(path, render_page(document).encode())


def comparison_page(
    comparison: Comparison, X: np.ndarray, *, titles: Titles | None = None, picture_shape: tuple[int, int] | None = None
) -> Document:
    """Return the page before it is rendered; arguments are those of :func:`write_page`."""
    if picture_shape is not None:
        picture_shape = check_picture_shape(picture_shape, X.shape[1])
    elif titles is None:
        picture_shape = guess_picture_shape(X)
    n_queries = counted(comparison.n_queries, "query", "queries")
    subtitle = f"{counted(comparison.n_bits, 'bit')} by {comparison.method}, compared on {n_queries}"
    summary = Section("In short", "summary", [Text((sentence,)) for sentence in comparison.sentences()])
    shown: Sequence[Block]
    if picture_shape is not None:
        shown = _pictures(comparison.questions, X, picture_shape)
    else:
        texts = short_titles(titles, len(X))
        shown = [_lists(question, texts) for question in comparison.questions]
    marks = _MARKED_TITLES if picture_shape is None else _MARKED_PICTURES
    if all(question.label is None for question in comparison.questions):
        marks = _NOTHING_MARKED
    searches = Section("What searches find", "searches", [Text((_READING,)), Text((marks,)), *shown])
    return Document("Codes against vectors", subtitle, [summary, searches, _figures(comparison)])


def _figures(comparison: Comparison) -> Section:
    section = Section("Figures", "figures")
    for length in comparison.lengths:
        if length.n_bits != comparison.n_bits:
            section.blocks.append(Text((f"{counted(length.n_bits, 'bit')}: {length.verdict}",)))
        section.blocks.append(_table(comparison, length))
        section.blocks += [Text((f"{name} was left out: {reason}",)) for name, reason in length.left_out.items()]
    section.blocks.append(Text((comparison.explanation(),)))
    if len(comparison.lengths) > 1:
        section.blocks += _charts(comparison)
    return section


def _table(comparison: Comparison, length: LengthComparison) -> Table:
    rows = tuple(method.cells() for method in (comparison.exact, *length.methods))
    strong = frozenset((1, place) for place in range(len(COLUMNS)))
    chosen = ", the chosen length" if length.n_bits == comparison.n_bits and len(comparison.lengths) > 1 else ""
    return Table(f"Codes of {counted(length.n_bits, 'bit')}{chosen}; bold: the chosen method", COLUMNS, rows, strong)


def _charts(comparison: Comparison) -> list[Chart]:
    measured = {"precision at 10": "precision_at_10", "recall of 10 in 100": "recall_10_at_100"}
    ticks = tuple(float(length.n_bits) for length in comparison.lengths)
    own = comparison.chosen.methods[0].name
    charts = []
    for title, name in measured.items():
        series = []
        for method in dict.fromkeys(one.name for length in comparison.lengths for one in length.methods):
            points = sorted(
                (float(length.n_bits), float(getattr(one, name)))
                for length in comparison.lengths
                for one in length.methods
                if one.name == method and getattr(one, name) is not None
            )
            if points:
                x, y = zip(*points, strict=True)
                series.append(Series(method, x, y, emphasized=method == own))
        if series:
            charts.append(Chart(title.capitalize(), "bits", title, tuple(series), tuple(sorted(ticks))))
    return charts


def _lists(question: Question, texts: Sequence[str]) -> Lists:
    rows = tuple(
        (answer.method, tuple(texts[row] for row in answer.rows[:_N_TITLES]), tuple(answer.right[:_N_TITLES]))
        for answer in question.answers
    )
    return Lists(_caption(question), texts[question.row], rows)


def _pictures(questions: Sequence[Question], X: np.ndarray, shape: tuple[int, int]) -> list[Pictures]:
    rows = sorted({row for one in questions for row in (one.row, *(r for a in one.answers for r in a.rows))})
    images = dict(zip(rows, gray_pictures(X[rows], shape), strict=True))
    return [
        Pictures(
            _caption(question),
            images[question.row],
            tuple(
                (answer.method, tuple(images[row] for row in answer.rows), tuple(answer.right))
                for answer in question.answers
            ),
        )
        for question in questions
    ]


def _caption(question: Question) -> str:
    return f"Row {question.row}" if question.label is None else f"Row {question.row}, class {question.label}"
