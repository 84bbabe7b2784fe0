"""Measure what codes keep of vectors: fit on some rows and search for the others, by codes and by vectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from ..base import BaseHasher
from ..codes import BinaryCodes, n_bytes
from ..evaluation.items import codes_of_training_rows
from ..evaluation.metrics import precision_at
from ..exceptions import MissingExtraError
from .figures import MethodFigures
from .searches import ByCodes, ByEstimates, ByVectors, Search
from .split import N_NEAREST, N_SHORTLIST, Split

__all__ = ["FLOAT_QUERIES", "FROM_VECTORS", "Bench", "Measured", "recall"]

_Result = TypeVar("_Result")

FROM_VECTORS = "coded from vectors alone"
FLOAT_QUERIES = "(float queries)"


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a method, and the positions of what it finds first for each query."""

    figures: MethodFigures
    found: np.ndarray


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is known of a method before it searches."""

    name: str
    bytes_per_item: float
    model_bytes: int | None = None
    fit_seconds: float | None = None
    n_different_codes: int | None = None


@dataclass(slots=True)
class Bench:
    """Measures one search after another with the same queries and items."""

    split: Split
    exact: Measured = field(init=False)
    _nearest_vectors: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        search = ByVectors(self.split.items)
        self._nearest_vectors = search.nearest(self.split.queries, N_NEAREST)
        size = self.split.X.dtype.itemsize * self.split.X.shape[1]
        self.exact = self._measured(search, _Origin("float search", size))

    def of_hasher(self, hasher: BaseHasher, fit_seconds: float) -> list[Measured]:
        """Measure the codes of a fitted hasher, and those of items without labels if these are different."""
        items, labels = self.split.items, self.split.item_labels
        codes, unlabeled = codes_of_training_rows(hasher, items, labels), hasher.encode_database(items)
        search = ByCodes(hasher, codes)
        name = f"{type(hasher).__name__} {FLOAT_QUERIES}" if search.takes_vectors else type(hasher).__name__
        measured = [self._of_codes(search, name, fit_seconds)]
        if labels is not None and codes != unlabeled:
            measured.append(self._of_codes(ByCodes(hasher, unlabeled), f"{name}, {FROM_VECTORS}", fit_seconds))
        return measured

    def of_estimates(self, n_bits: int) -> Measured:
        """Measure RaBitQ in as many bytes as codes of this length take, or with as many bits if those are too few.

        Two numbers per item take four bytes, so codes of less than eight bytes get the same bits and four bytes more.
        """
        size = n_bytes(n_bits)
        if size >= 2 * ByEstimates.EXTRA_BYTES:
            n_bits = min(8 * (size - ByEstimates.EXTRA_BYTES), self.split.X.shape[1])
        search, seconds = _timed(lambda: ByEstimates(self.split.items, n_bits))
        size = n_bytes(n_bits) + ByEstimates.EXTRA_BYTES
        return self._measured(search, _Origin(f"RaBitQ {FLOAT_QUERIES}", size, search.model_bytes, seconds))

    def of_products(self, n_bits: int) -> Measured:
        """Measure product quantization by FAISS in as many bytes as codes of this length take."""
        try:
            from ..adapters.faiss_quantizer import ProductQuantizer
        except MissingExtraError as error:
            raise ValueError(str(error)) from error
        size = n_bytes(n_bits)
        search, seconds = _timed(lambda: ProductQuantizer(size).fit(self.split.items))
        return self._measured(search, _Origin(f"PQ {FLOAT_QUERIES}", size, search.model_bytes, seconds))

    def _of_codes(self, search: ByCodes, name: str, fit_seconds: float) -> Measured:
        codes, hasher = search.codes, search.hasher
        queries = search.queries(self.split.queries)
        milliseconds = _milliseconds(lambda: search.index.search(queries, N_NEAREST), len(queries))
        precision = None
        if self.split.labeled is not None:
            asked, known = self.split.labeled
            some = search.queries(self.split.queries[asked])
            if hasattr(hasher, "make_index"):
                precision = self.split.precision(search.index.search(some, N_NEAREST, among=np.flatnonzero(known)).ids)
            else:
                precision = self._precision_of_codes(some, codes[known])
        n_different = len(np.unique(codes.packed, axis=0))
        origin = _Origin(name, codes.packed.shape[1], search.model_bytes, fit_seconds, n_different)
        return self._put_together(search, origin, precision, milliseconds)

    def _precision_of_codes(self, queries: BinaryCodes, items: BinaryCodes) -> float:
        """Return the precision averaged over all orders of equal distances, of the queries and items with labels."""
        of_queries, of_items = (self.split.label_index[rows] for rows in (self.split.query, self.split.base))
        return precision_at(queries, items, of_queries[of_queries >= 0], of_items[of_items >= 0], N_NEAREST)

    def _measured(self, search: Search, origin: _Origin) -> Measured:
        queries = self.split.queries
        milliseconds = _milliseconds(lambda: search.nearest(queries, N_NEAREST), len(queries))
        precision = None
        if self.split.labeled is not None:
            asked, known = self.split.labeled
            # A neighbor without a label is neither right nor wrong.
            precision = self.split.precision(search.nearest(queries[asked], N_NEAREST, np.flatnonzero(known)))
        return self._put_together(search, origin, precision, milliseconds)

    def _put_together(self, search: Search, origin: _Origin, precision: float | None, milliseconds: float) -> Measured:
        """Add the recall of the nearest vectors in a longer list."""
        found = search.nearest(self.split.queries, N_SHORTLIST if self.split.has_recall else N_NEAREST)
        figures = MethodFigures(
            name=origin.name,
            precision_at_10=precision,
            recall_10_at_100=recall(self._nearest_vectors, found) if self.split.has_recall else None,
            bytes_per_item=origin.bytes_per_item,
            n_different_codes=origin.n_different_codes,
            model_bytes=origin.model_bytes,
            fit_seconds=origin.fit_seconds,
            search_milliseconds=milliseconds,
        )
        return Measured(figures, found[:, :N_NEAREST])


def recall(nearest: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the nearest rows that were found, averaged over queries."""
    shares = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(nearest, found, strict=True)]
    return float(np.mean(shares))


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _milliseconds(search: Callable[[], object], n_queries: int) -> float:
    search()  # compiles the loops
    started = time.perf_counter()
    search()
    return 1e3 * (time.perf_counter() - started) / n_queries
