"""Preprocessing steps as parts of a graph: numbers, tables, texts as words, and features of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.feature_extraction.text import TfidfVectorizer

from ..data.features._picture_loops import CLIP, EPSILON
from ..data.features.numeric import Impute, Reduce, Scale, UnitLength
from ..data.features.pictures import CELLS_PER_BLOCK, COLOR_BINS, GRAY_BINS, PictureFeatures, n_orientations
from ..data.features.table import OneHot, TableFeatures
from ..data.features.text import Text
from ..exceptions import NotExpressibleError
from .graph import Value, project, squared_norms

SPLITTING = r"words of a text: its matches of [\p{L}\p{N}_]{2,} in lowercase; shorter rows end in empty strings"
_GRAY = 1  # channels


def prepare(steps: Sequence[Any], rows: Value) -> Value:
    """Return rows as fitted steps leave them."""
    for position, step in enumerate(steps):
        rows = _formula(step, position)(step, rows)
    return rows


def _formula(step: Any, position: int) -> Callable[[Any, Value], Value]:
    if type(step) in STEPS:
        return STEPS[type(step)]
    if isinstance(step, Text):
        raise NotExpressibleError(
            f"The step Text is at position {position}. Only the input of a graph holds words, so Text must be first. "
            "Export the hasher inside, hasher.hasher_, and let hasher.prepare make its rows."
        )
    known = ", ".join(sorted(each.__name__ for each in STEPS))
    raise NotExpressibleError(
        f"The step {type(step).__name__} at position {position} cannot be written as an ONNX graph; {known} can. "
        "Export the hasher inside, hasher.hasher_, and prepare rows before the graph sees them; or make a scikit-learn "
        "Pipeline of these steps and the hasher, and convert that with skl2onnx after register_converters()."
    )


def _scale(step: Any, rows: Value) -> Value:
    # As in Python, single precision is left and entered again around each operation.
    centered = (rows.cast(np.float64) - step.mean_).cast(rows.dtype)
    return (centered.cast(np.float64) / step.scale_).cast(rows.dtype)


def _impute(step: Any, rows: Value) -> Value:
    if step.fill_values_.dtype.kind == "O":
        raise _of_text("Impute", "missing text")
    is_missing = rows.apply("IsNaN", dtype=np.bool_)
    return is_missing.where(rows.graph.constant(step.fill_values_, rows.dtype), rows)


def _one_hot(step: Any, rows: Value) -> Value:
    values = step.category_values_.tolist()
    if any(isinstance(value, str) for value in values):
        raise _of_text("OneHot", "categories that are text")
    ends = np.cumsum(step.category_counts_).tolist()
    parts = []
    for column, (count, end) in enumerate(zip(step.category_counts_.tolist(), ends, strict=True)):
        own = rows.columns(column, column + 1)
        for value in values[end - count : end]:
            is_missing = value is None or value != value
            hit = own.apply("IsNaN", dtype=np.bool_) if is_missing else own.equals(float(value))
            parts.append(hit.cast(rows.dtype))
    return rows.graph.concat(parts)


def _table(step: Any, rows: Value) -> Value:
    if step.text_column_ >= 0:
        raise _of_text("TableFeatures", "a column of text")
    if len(step.category_columns_):
        raise _of_text("TableFeatures", "columns of categories, which are text to it")
    numbers = rows.cast(np.float64).take(step.number_columns_)
    return prepare([getattr(step, name) for name in step.number_steps()], numbers)


def _reduce(step: Any, rows: Value) -> Value:
    return project(rows, step.components_, step.intercept_)


def _unit_length(step: Any, rows: Value) -> Value:
    lengths = squared_norms(rows).apply("Sqrt")
    return rows / (lengths > 0.0).where(lengths, 1.0)


def _of_text(step: str, what: str) -> NotExpressibleError:
    return NotExpressibleError(
        f"The step {step} reads {what}, and this graph takes rows of numbers: ONNX has no operators that split and "
        "compare text as Python does. Export the hasher inside, hasher.hasher_, and let hasher.prepare make its rows."
    )


def words_of(texts: Sequence[str]) -> np.ndarray:
    """Return the words of texts as an ONNX model of texts takes them, shape (n_texts, n_words).

    Examples
    --------
    >>> from starshl.export import words_of
    >>> words_of(["A red car", "bread"]).tolist()
    [['red', 'car'], ['bread', '']]
    """
    split = TfidfVectorizer().build_analyzer()
    found = [split(text) for text in texts]
    words = np.full((len(found), max(map(len, found), default=0) or 1), "", dtype=object)
    for row, own in zip(words, found, strict=True):
        row[: len(own)] = own
    return words


def text_features(step: Text, words: Value, dtype: DTypeLike) -> Value:
    """Return TF-IDF weights along the main directions; see :class:`starshl.data.features.Text`."""
    vocabulary = step.words_.tolist()
    counting = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    places = {"ngram_indexes": list(range(len(vocabulary))), "pool_strings": vocabulary}
    counts = words.apply("TfIdfVectorizer", dtype=np.float32, **counting, **places).cast(dtype)
    weights = (counts > 0.0).where((counts.apply("Max", 1.0).apply("Log") + 1.0) * step.idf_, 0.0)
    lengths = squared_norms(weights).apply("Sqrt")
    return (weights / (lengths > 0.0).where(lengths, 1.0)) @ step.components_.T


def picture_features(step: Any, rows: Value) -> Value:
    """Return the features of pictures that come as flat rows, in single precision as in Python."""
    height, width, n_channels = step.shape_.tolist()
    flat = rows.cast(np.float32) / float(step.white_)
    pictures = flat.cast(np.float64).reshape(-1, height, width, n_channels)
    parts = []
    for name in step.views:
        if name == "pixels":
            parts.append(flat)
        elif name == "color":
            parts.append(_colors(pictures, (height, width, n_channels)).cast(np.float32))
        else:
            cell, is_signed = step.cell_of(name)
            parts.append(_hog(pictures, (height, width), cell, signed=is_signed).cast(np.float32))
    return rows.graph.concat(parts)


def _hog(pictures: Value, shape: tuple[int, int], cell: int, *, signed: bool) -> Value:
    """Return histograms of gradients, (n, n_features); see :func:`starshl.data.features.pictures.hog_features`."""
    height, width = shape
    down, across, length = _longest_gradient(pictures)
    n_bins, turn = n_orientations(signed), 2 * np.pi if signed else np.pi
    # In orientations from the middle of each one, (n, height, width, n_bins); half a turn away is farthest.
    angle = _angle(down, across) * (n_bins / turn) - 0.5
    offset = angle - np.arange(n_bins)
    offset = (offset - (offset / n_bins + 0.5).apply("Floor") * n_bins).apply("Abs")
    votes = (1.0 - offset).apply("Max", 0.0) * length
    n_down, n_across = height // cell, width // cell
    by_row = votes.reshape(-1, height, width * n_bins)
    by_row = (pictures.graph.constant(_nearness(height, n_down, cell)) @ by_row).reshape(-1, n_down, width, n_bins)
    by_cell = pictures.graph.constant(_nearness(width, n_across, cell)) @ by_row
    cells = (by_cell / float(cell * cell)).reshape(-1, n_down * n_across, n_bins)
    return _blocks(cells, n_down, n_across, n_bins)


def _longest_gradient(pictures: Value) -> tuple[Value, Value, Value]:
    """Return the longest gradient of all channels at each pixel and its length, (n, height, width, 1)."""
    down, across = _differences(pictures, axis=1), _differences(pictures, axis=2)
    squared = across * across + down * down
    longest = squared.apply("ArgMax", axis=3, keepdims=1, dtype=np.int64)
    chosen = [each.graph.apply("GatherElements", each, longest, axis=3) for each in (down, across, squared)]
    return chosen[0], chosen[1], chosen[2].apply("Sqrt")


def _differences(pictures: Value, axis: int) -> Value:
    """Return the differences of the neighbors of each pixel along an axis, zero at the border."""
    graph, end = pictures.graph, np.iinfo(np.int64).max
    inner = pictures.columns(2, end, axis) - pictures.columns(0, -2, axis)
    pads = np.zeros(8, dtype=np.int64)
    pads[[axis, 4 + axis]] = 1
    return graph.apply("Pad", inner, graph.constant(pads))


def _angle(down: Value, across: Value) -> Value:
    """Return atan2(down, across), from minus to plus half a circle."""
    rise, run = down.apply("Abs"), across.apply("Abs")
    larger = rise.apply("Max", run)
    slope = rise.apply("Min", run) / (larger + larger.equals(0.0).cast(np.float64))
    angle = _arctangent(slope)
    angle = (rise > run).where(np.pi / 2 - angle, angle)
    angle = (across < 0.0).where(np.pi - angle, angle)
    return (down < 0.0).where(-angle, angle)


def _arctangent(slope: Value) -> Value:
    """Return the arctangent in double precision: runtimes know it in single precision, and one step mends that."""
    first = slope.cast(np.float32).apply("Atan").cast(np.float64)
    sine, cosine = first.apply("Sin"), first.cosine()
    return first + (slope * cosine - sine) / (slope * sine + cosine)


def _nearness(n_pixels: int, n_cells: int, cell: int) -> np.ndarray:
    """Return how much of a vote of each pixel goes to each cell along one side, (n_cells, n_pixels)."""
    places = (np.arange(n_pixels) + 0.5) / cell - 0.5
    return np.maximum(0.0, 1.0 - np.abs(places - np.arange(n_cells)[:, None]))


def _blocks(cells: Value, n_down: int, n_across: int, n_bins: int) -> Value:
    """Return all blocks of neighboring cells, normalized, clipped and normalized again."""
    numbers = np.arange(n_down * n_across).reshape(n_down, n_across)
    side = CELLS_PER_BLOCK
    windows = np.lib.stride_tricks.sliding_window_view(numbers, (side, side)).reshape(-1, side * side)
    blocks = cells.take(windows.ravel()).reshape(-1, len(windows), side * side * n_bins)
    blocks = _unit_blocks(_unit_blocks(blocks).apply("Min", CLIP))
    return blocks.reshape(-1, windows.size * n_bins)


def _unit_blocks(blocks: Value) -> Value:
    return blocks / ((blocks * blocks).sum(axis=2) + EPSILON**2).apply("Sqrt")


def _colors(pictures: Value, shape: tuple[int, int, int]) -> Value:
    """Return the roots of the shares of pixels in bins of color or gray; see :mod:`starshl.data.features.pictures`."""
    n_pixels, n_channels = shape[0] * shape[1], shape[2]
    pixels = pictures.reshape(-1, n_pixels, n_channels)
    if n_channels == _GRAY:
        counts = _members(pixels, GRAY_BINS).sum(axis=1).reshape(-1, GRAY_BINS)
        return (counts / float(n_pixels)).apply("Sqrt")
    hues, saturations, values = (_members(part, n_bins) for part, n_bins in zip(_hsv(pixels), COLOR_BINS, strict=True))
    n_others = COLOR_BINS[1] * COLOR_BINS[2]
    others = saturations.reshape(-1, n_pixels, COLOR_BINS[1], 1) * values.reshape(-1, n_pixels, 1, COLOR_BINS[2])
    # Counts are exact in single precision; in double, some versions of ONNX Runtime fuse this into what they lack.
    hues, others = hues.cast(np.float32), others.cast(np.float32)
    counts = (hues.transpose(0, 2, 1) @ others.reshape(-1, n_pixels, n_others)).cast(np.float64)
    return (counts.reshape(-1, COLOR_BINS[0] * n_others) / float(n_pixels)).apply("Sqrt")


def _hsv(pixels: Value) -> tuple[Value, Value, Value]:
    """Return hue, saturation and value of colors, from 0 to 1; see :func:`starshl.data.features.pictures.to_hsv`."""
    value, least = pixels.max(axis=2), pixels.min(axis=2)
    spread = value - least
    saturation = _quotient(spread, value)
    red, green, blue = (pixels.columns(channel, channel + 1, axis=2) for channel in range(3))
    is_red, is_green = value.equals(red), value.equals(green)
    turns = is_red.where(green - blue, is_green.where(blue - red, red - green))
    thirds = is_red.where(value * 0.0, is_green.where(value * 0.0 + 2.0, value * 0.0 + 4.0))
    place = (_quotient(turns, spread) + thirds) / 6.0
    hue = (spread > 0.0).where(place - place.apply("Floor"), 0.0)
    return hue, saturation, value


def _quotient(values: Value, divisors: Value) -> Value:
    """Return quotients, zero where a divisor is."""
    is_positive = divisors > 0.0
    return is_positive.where(values / is_positive.where(divisors, 1.0), 0.0)


def _members(values: Value, n_bins: int) -> Value:
    """Return which bin each number from 0 to 1 is in, (n, n_pixels, n_bins) of zeros and ones."""
    places = (values * float(n_bins)).apply("Floor").apply("Min", float(n_bins - 1))
    return places.equals(np.arange(n_bins)).cast(np.float64)


STEPS: dict[type, Callable[[Any, Value], Value]] = {
    Scale: _scale,
    Impute: _impute,
    OneHot: _one_hot,
    TableFeatures: _table,
    PictureFeatures: picture_features,
    Reduce: _reduce,
    UnitLength: _unit_length,
}
