"""The comparison as one HTML page, with real queries and what each method finds for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any, TypeAlias

import numpy as np

from .._common.files import write_atomically
from .._common.validation import check_integer
from .._common.words import counted
from ..exceptions import InputError
from .benchmark import COLUMNS
from .comparison import ABOUT_EMBEDDERS, Comparison, ExampleQuery, LengthComparison
from .reports.document import Block, Chart, Document, Lists, Pictures, Section, Series, Table, Text
from .reports.html import render_page
from .whole_lists import Reliability

Titles: TypeAlias = Sequence[object]
_N_TITLES = 5  # texts per method; more would make the page too long to compare
_READING = (
    "Each query was held out: no method has seen it. Lists begin with what is nearest; equal distances are ordered by "
    "the scores of the query."
)
_MARKED_TITLES = "A check mark: the class of the query. A cross: another class. A dash: its class is not known."
_MARKED_PICTURES = "A solid green frame: the class of the query. Dashed: another class. Gray: its class is not known."
_NOTHING_MARKED = "No labels are known, so nothing says which answers are right: judge by eye, against float search."
# Fields of metadata that usually say what an item is, best first.
_USUAL_NAMES = ("title", "titles", "headline", "caption", "name", "text", "description", "filename", "file", "path")
_MOST_LETTERS = 160  # about two lines on the page
# Smaller squares are tables of a few measurements.
_LEAST_SIDE = 6
_LARGEST_GRAY = 255
_N_TRIED = 200  # rows that must look like pixels


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
        section.blocks += _tables(comparison, length)
        section.blocks += [Text((about,)) for about in [length.about_probabilities()] if about]
        section.blocks += [Text((f"{name} was left out: {reason}",)) for name, reason in length.left_out.items()]
    section.blocks.append(Text((comparison.explanation(),)))
    if comparison.chosen.reliability is not None:
        section.blocks.append(reliability_chart(comparison.chosen.reliability))
    if comparison.embedders:
        rows = tuple(method.cells() for method in comparison.embedders)
        section.blocks += [Text((ABOUT_EMBEDDERS,)), Table("Embedders side by side", COLUMNS, rows)]
        reasons = comparison.embedders_left_out.items()
        section.blocks += [Text((f"{name} was left out: {reason}",)) for name, reason in reasons]
    if len(comparison.lengths) > 1:
        section.blocks += _charts(comparison)
    return section


def _tables(comparison: Comparison, length: LengthComparison) -> list[Table]:
    chosen = ", the chosen length" if length.n_bits == comparison.n_bits and len(comparison.lengths) > 1 else ""
    tables = []
    for title, methods in length.tables(comparison.exact).items():
        own = [row for row, method in enumerate(methods) if method.name.startswith(length.methods[0].name)]
        strong = frozenset((row, place) for row in own for place in range(len(COLUMNS)))
        caption = f"{title}: codes of {counted(length.n_bits, 'bit')}{chosen}; bold: the chosen method"
        tables.append(Table(caption, COLUMNS, tuple(method.cells() for method in methods), strong))
    return tables


def reliability_chart(found: Reliability) -> Chart:
    """Return a picture of how right probabilities are: right ones are on the line from corner to corner."""
    told = Series("these probabilities", tuple(found.said), tuple(found.so), emphasized=True)
    right = Series("right ones", (0.0, 1.0), (0.0, 1.0))
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    return Chart("How right probabilities of hits are", "what is said", "share that is so", (told, right), ticks)


def _charts(comparison: Comparison) -> list[Chart]:
    measured = {
        "precision at 10": "precision_at_10",
        "recall of 10 in 10": "recall_10_at_10",
        "recall of 10 in 100": "recall_10_at_100",
    }
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


def _lists(question: ExampleQuery, texts: Sequence[str]) -> Lists:
    rows = tuple(
        (answer.method, tuple(texts[row] for row in answer.rows[:_N_TITLES]), tuple(answer.right[:_N_TITLES]))
        for answer in question.answers
    )
    return Lists(_caption(question), texts[question.row], rows)


def _pictures(questions: Sequence[ExampleQuery], X: np.ndarray, shape: tuple[int, int]) -> list[Pictures]:
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


def _caption(question: ExampleQuery) -> str:
    return f"Row {question.row}" if question.label is None else f"Row {question.row}, class {question.label}"


def find_titles(
    metadata: Sequence[Mapping[str, Any]] | None = None,
    references: Sequence[str | None] | None = None,
    *,
    field: str | None = None,
) -> list[str] | None:
    """Return a short text for each row, None if there is none.

    ``field`` names a field of the metadata. None is one that usually holds titles, or else any field of text, or else
    the references.
    """
    field = _title_field(metadata) if field is None else _known_field(field, metadata)
    texts: Sequence[object] | None = references
    if field is not None and metadata is not None:
        texts = [entry.get(field) for entry in metadata]
    return None if texts is None else short_titles(texts, len(texts))


def _title_field(metadata: Sequence[Mapping[str, Any]] | None) -> str | None:
    if not metadata:
        return None
    of_text = [name for name, value in metadata[0].items() if isinstance(value, str)]
    usual = [name for usual in _USUAL_NAMES for name in of_text if name.lower() == usual]
    return next(iter(usual + of_text), None)


def _known_field(name: str, metadata: Sequence[Mapping[str, Any]] | None) -> str:
    known = list(dict.fromkeys(field for entry in metadata or () for field in entry))
    if name not in known:
        fields = f"The metadata has {', '.join(map(repr, known))}." if known else "There is no metadata."
        raise ValueError(f"The field of titles is {name!r}. {fields} Name one of its fields, or give the titles.")
    return name


def short_titles(texts: Sequence[object] | None, n_rows: int) -> list[str]:
    """Return one line for each row; a row without a text is called by its number."""
    texts = [None] * n_rows if texts is None else texts
    if len(texts) != n_rows:
        raise ValueError(f"There are {len(texts)} titles and {n_rows} rows; give one per row.")
    return [_short(text) or f"row {row}" for row, text in enumerate(texts)]


def _short(text: object) -> str:
    words = " ".join(str("" if text is None else text).split())
    return words if len(words) <= _MOST_LETTERS else f"{words[: _MOST_LETTERS - 3].rstrip()}..."


def guess_picture_shape(X: np.ndarray) -> tuple[int, int] | None:
    """Return the shape of square gray pictures if rows look like pixels: whole numbers from 0 to 255; else None.

    Examples
    --------
    >>> guess_picture_shape(np.full((3, 64), 16.0)), guess_picture_shape(np.full((3, 64), 0.5))
    ((8, 8), None)
    """
    side = isqrt(X.shape[1])
    if side < _LEAST_SIDE or side * side != X.shape[1]:
        return None
    some = X[:_N_TRIED].astype(np.float64)
    is_gray = some.min() >= 0 and 1 < some.max() <= _LARGEST_GRAY and bool((some == np.floor(some)).all())
    return (side, side) if is_gray else None


def check_picture_shape(shape: tuple[int, int], n_features: int) -> tuple[int, int]:
    """Return the height and width of pictures; refuse those that do not take all features."""
    height, width = (check_integer(size, "picture_shape", low=1) for size in shape)
    if height * width != n_features:
        raise InputError(
            "{parameter} is {height} x {width}, which is {n_pixels} pixels",
            "rows have {n_features} features",
            "Give the height and width of the pictures in the rows.",
            parameter="picture_shape",
            value=[height, width],
            height=height,
            width=width,
            n_pixels=height * width,
            n_features=n_features,
        )
    return height, width


def gray_pictures(X: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return rows as uint8 pictures; the smallest value of all is black and the largest white."""
    values = X.astype(np.float64)
    low, span = values.min(), np.ptp(values)
    scaled = np.round(255 * (values - low) / (span or 1.0))
    return scaled.astype(np.uint8).reshape(len(X), *shape)
