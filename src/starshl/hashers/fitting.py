"""What surrounds a fit: several code lengths from one, what a model remembers of it, and the codes of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import LabelsLike, check_labels
from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes
from ..data.tables.row_source import RowSource
from .base import BaseHasher

BLOCK_ROWS = 8192  # a multiple of the tiles of all hashers, so that blocks change no byte of the codes


def fit_lengths(
    hasher: BaseHasher,
    X: SamplesLike,
    y: LabelsLike,
    lengths: Sequence[int],
    fit: Callable[[BaseHasher, SamplesLike, LabelsLike], BaseHasher] = lambda hasher, X, y: hasher.fit(X, y),
) -> Iterator[BaseHasher]:
    """Fit a hasher for each length in turn; the given one must have the first. ``fit`` may do it elsewhere."""
    first = fit(hasher, X, y)
    yield first
    for n_bits in lengths[1:]:
        yield first.with_bits(n_bits) if "with_bits" in first.supports else fit(first.at_length(n_bits), X, y)


def name_features(fitted: BaseHasher, names: Sequence[str] | None) -> None:
    """Let a hasher remember the columns that it was fitted on, if they have names.

    A later table may then have its columns in any order, and more of them.
    """
    if names is not None:
        fitted.feature_names_in_ = np.array(names, dtype=object)


def forget_how_it_ran(fitted: BaseHasher) -> None:
    """Reset the settings of a fit that are not part of the model, so that its file is the same for any of them."""
    settings, known = {"verbose": 0, "n_jobs": None}, fitted.inner.get_params()
    fitted.inner.set_params(**{name: value for name, value in settings.items() if name in known})


def encode_blocks(
    hasher: BaseHasher,
    source: RowSource,
    rows: np.ndarray,
    labels: LabelsLike = None,
    *,
    database: bool = False,
    report: Callable[[int], None] = lambda n_done: None,
) -> BinaryCodes:
    """Return the codes of some rows of a source, read block by block.

    Parameters
    ----------
    rows : array of int, numbers of rows in rising order
    labels : array of as many labels, or Labels, default=None
    database : bool, default=False
        Whether the rows are items to be searched, not queries.
    report : function that is called with the number of rows that were encoded
    """
    parts, n_done = [], 0
    parsed = check_labels(labels, len(rows)) if database and labels is not None else None
    for block in source.blocks(rows, BLOCK_ROWS):
        block = block.astype(source.precision_in_memory, copy=False)
        known = None if parsed is None else parsed.take(slice(n_done, n_done + len(block)))
        parts.append(hasher.encode_database(block, known) if database else hasher.encode(block))
        n_done += len(block)
        report(len(block))
    return BinaryCodes.joined(parts)


def codes_of_vectors(fitted: BaseHasher, X: ArrayLike, y: LabelsLike) -> BinaryCodes:
    """Return the codes of the rows of a fit without their labels, as if they were unseen, where a method can."""
    alone = fitted.encode_left_out(X)
    labeled = check_labels(y, len(alone)).labeled
    packed = np.where(labeled[:, None], alone.packed, fitted.encode_training(X, y).packed)
    return fitted.as_codes(packed)
