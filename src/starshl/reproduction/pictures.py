"""A query and the pictures that each method retrieves for it, by the stored codes."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from math import isqrt

import numpy as np

from .._common.threads import tiles
from ..data import datasets
from ..data.datasets.store import Dataset
from ..evaluation.reports.document import Pictures, Section, Table, Text, joined
from ..exceptions import RecordFormatError
from .compared_methods import COMPARED_METHODS, title_of
from .coverage import coverage_of
from .figures import FIGURES
from .protocols import Protocol
from .records import Record, RecordFolder, RunKey
from .results import ProtocolResults

N_RETRIEVED = 15
# The class of the query in the paper's figure; other data sets show their second class too.
QUERY_CLASS = 1
_QUERIES_AT_ONCE = 256
_DATA_SETS_WITH_PICTURES = ("cifar10", "digits")
QUERY_RULE = (
    "One query of the first run, chosen by a rule: of all queries of its class, the one for which the methods are "
    "nearest to their means over the class. Codes at equal distance are in the order of the database, which is random. "
    "Where the nearest codes are those of a single class, as with StarRidge here, a query has nearly all right or none."
)
_NO_CODES_NOTE = (
    "The pictures are not shown: they need the codes, which only run records hold, and this report was made from "
    "summaries. `starshl reproduce --figure pictures` makes the records for CIFAR-10."
)


def pictures_section(folder: RecordFolder | None, protocol: ProtocolResults) -> Section | None:
    """Return the pictures of the first run at 45 bits, or else at the longest length; None if there are none to show.

    The query is a typical one of its class: see :func:`typical_query`. Items at equal distance are in the order of the
    database, which is random.
    """
    if protocol.dataset not in _DATA_SETS_WITH_PICTURES or protocol.base is None or not protocol.lengths:
        return None
    n_bits = length if (length := pictured_length()) in protocol.lengths else protocol.lengths[-1]
    section = Section(f"{protocol.dataset}: pictures retrieved at {n_bits} bits", f"pictures-{protocol.name}")
    keys = {run.method: run.key for run in protocol.runs if (run.run, run.n_bits) == (0, n_bits)}
    records = _records(folder, [keys[method] for method in protocol.methods if method in keys])
    if not records:
        section.blocks.append(Text((_NO_CODES_NOTE,)))
        return section
    try:
        dataset = datasets.get(protocol.dataset, download=False)
        split = _as_run(protocol.base, protocol).split(dataset, 0)
    except (OSError, ValueError) as error:  # absent, damaged, or not the rows of the records
        section.blocks.append(Text((f"The pictures are not shown: {error}",)))
        return section
    candidates = np.flatnonzero(dataset.y[split.query] == QUERY_CLASS)
    nearest = [_nearest(record, candidates) for record in records]
    hits = np.array([(dataset.y[split.database[rows]] == QUERY_CLASS).sum(axis=1) for rows in nearest])
    place = typical_query(hits)
    rows = tuple(
        _row(record, dataset, split.database[found[place]]) for record, found in zip(records, nearest, strict=True)
    )
    caption = (
        f"Left, the query ({dataset.names[QUERY_CLASS]}), then the {N_RETRIEVED} nearest codes of the database; "
        "a dashed frame marks another class"
    )
    section.blocks += [
        Text(_notes(protocol, n_bits, {record.key.method for record in records})),
        Pictures(caption, _picture(dataset, split.query[candidates[place]]), rows),
        _means_table(records, hits, place),
    ]
    return section


def pictured_length() -> int:
    """Return the length of the codes whose pictures the paper prints."""
    return max(FIGURES["pictures"].bits or ())


def typical_query(hits: np.ndarray) -> int:
    """Return the query whose hits are nearest to the mean over all queries; the first of several.

    Parameters
    ----------
    hits : array of shape (n_methods, n_queries)
        How many of the retrieved items are of the query's class.

    Examples
    --------
    >>> typical_query(np.array([[0, 6, 15], [1, 8, 15]]))
    1
    """
    squared = (hits - hits.mean(axis=1, keepdims=True)) ** 2
    return int(squared.sum(axis=0).argmin())


def _means_table(records: list[Record], hits: np.ndarray, place: int) -> Table:
    rows = tuple(
        (title_of(record.key.method), str(own[place]), f"{own.mean():.1f}")
        for record, own in zip(records, hits, strict=True)
    )
    caption = f"Right among the {N_RETRIEVED} retrieved, for this query and on average"
    return Table(caption, ("method", "this query", f"mean of all {hits.shape[1]:,} queries of the class"), rows)


def _nearest(record: Record, queries: np.ndarray) -> np.ndarray:
    """Return which items of the database are nearest to some queries, (n_queries, N_RETRIEVED)."""
    codes, database = record.codes("query")[queries], record.codes("database")
    nearest = [
        np.argsort(codes[tile].distances(database), axis=1, kind="stable")[:, :N_RETRIEVED]
        for tile in tiles(len(codes), _QUERIES_AT_ONCE)
    ]
    return np.concatenate(nearest)


def _records(folder: RecordFolder | None, keys: list[RunKey | None]) -> list[Record]:
    records: list[Record] = []
    if folder is None:
        return records
    for key in keys:
        if key is not None:
            with suppress(FileNotFoundError, RecordFormatError):
                records.append(folder.load(key))
    return records


def _as_run(base: Protocol, protocol: ProtocolResults) -> Protocol:
    return base.reduced(n_train=protocol.n_train, n_query=protocol.n_query, n_runs=1) if protocol.reduced else base


def _notes(protocol: ProtocolResults, n_bits: int, shown: Collection[str]) -> tuple[str, ...]:
    lines = [QUERY_RULE]
    hashers = {method for method, length, _ in coverage_of(protocol).planned if length is not None}
    hashers |= {run.method for run in protocol.runs if run.n_bits is not None}
    order = {key: place for place, key in enumerate(COMPARED_METHODS)}
    if absent := sorted(hashers - set(shown), key=lambda method: order.get(method, len(order))):
        lines.append(
            f"Not shown, because no record of a first run at {n_bits} bits exists: {joined(map(title_of, absent))}."
        )
    return tuple(lines)


def _row(record: Record, dataset: Dataset, nearest: np.ndarray) -> tuple[str, tuple[np.ndarray, ...], tuple[bool, ...]]:
    images = tuple(_picture(dataset, row) for row in nearest)
    return title_of(record.key.method), images, tuple((dataset.y[nearest] == QUERY_CLASS).tolist())


def _picture(dataset: Dataset, row: int) -> np.ndarray:
    side = isqrt(dataset.X.shape[1])
    pixels = dataset.X[row].astype(np.float64).reshape(side, side)
    return np.round(255 * pixels / float(dataset.X.max())).astype(np.uint8)
