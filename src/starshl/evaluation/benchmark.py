"""Measure what codes keep of vectors: hold rows out as queries, and search the others by codes and by vectors."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_random_state

from .._common.labels import Labels, LabelsLike, check_labels
from .._common.threads import tiles
from .._common.validation import Seed, check_integer
from .._common.words import counted
from ..codes.binary import BinaryCodes, n_bytes
from ..codes.queries import EncodedQueries
from ..hashers.base import BaseHasher
from ..hashers.baselines.rabitq import RaBitQ, Sketch
from ..index.choice import make_index
from ..index.residual import ResidualIndex
from .float_search import ByClass, ByVectors
from .metrics import precision_at
from .whole_lists import ListQuality, Reliability, list_quality, reliability

_Result = TypeVar("_Result")
#: Recall: how many of the 10 nearest vectors are among the first 100 found.
N_NEAREST, N_SHORTLIST = 10, 100
_MOST_QUERIES = 1000  # a share then has a standard error of at most .016
# A block of distances stays below 100 MB for 100,000 items.
_QUERIES_PER_BLOCK = 100
#: Queries of a batch that is timed, and how often a time is taken; the median counts.
BATCH = 100
_N_TIMED, _N_BATCHES = 15, 3
FLOAT_SEARCH = "float search"
CLASS_FIRST = "linear classifier, then float search within the class"
FROM_VECTORS = "coded from vectors alone"
LABEL_COLUMN = "label column ordered by probability, 0 bits"
# Whole lists of some queries are enough: these many pairs take half a second to sort.
_MOST_PAIRS = 1 << 22
FLOAT_QUERIES = "(float queries)"
COLUMNS = (
    "method",
    "precision at 10",
    "mAP",
    "PR area",
    "recall of 10 in 10",
    "recall of 10 in 100",
    "bytes per item",
    "model, kB",
    "items and model, kB",
    "different codes",
    "fit, s",
    "one query, ms",
    "of 100 queries each, ms",
)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Queries and items as row numbers of X; labels if any were given, and their indices, -1 without a label."""

    X: np.ndarray
    labels: Labels | None
    label_index: np.ndarray
    query: np.ndarray
    base: np.ndarray

    @property
    def queries(self) -> np.ndarray:
        return self.X[self.query]

    @property
    def items(self) -> np.ndarray:
        return self.X[self.base]

    @property
    def item_labels(self) -> Labels | None:
        return None if self.labels is None else self.labels.take(self.base)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector in the type in which it was given."""
        return self.X.dtype.itemsize * self.X.shape[1]

    @property
    def has_recall(self) -> bool:
        return len(self.base) > N_SHORTLIST

    @property
    def has_labels(self) -> bool:
        return bool((self.label_index >= 0).any())

    @property
    def labeled(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Which queries and which items have labels; None if precision cannot be measured."""
        asked, known = self.label_index[self.query] >= 0, self.label_index[self.base] >= 0
        return (asked, known) if asked.any() and known.sum() >= N_NEAREST else None

    def precision(self, found: np.ndarray) -> float:
        """Return the share of right items among those found for the labeled queries; all of them have labels."""
        asked = self.query[self.label_index[self.query] >= 0]
        right = self.label_index[self.base][found] == self.label_index[asked][:, None]
        return float(np.mean(right))

    def precision_ceiling(self) -> float | None:
        """Return the precision of a ranking that puts every labeled item of the query's class first."""
        if self.labeled is None:
            return None
        asked, known = self.labeled
        n_of_class = np.bincount(self.label_index[self.base][known], minlength=self.label_index.max() + 1)
        return float(np.mean(np.minimum(n_of_class[self.label_index[self.query][asked]], N_NEAREST) / N_NEAREST))


def hold_out(X: ArrayLike, y: LabelsLike, n_queries: int | None, random_state: Seed) -> HeldOut:
    """Draw the queries: a tenth of the rows, at most 1,000, by default."""
    if issparse(X):
        raise TypeError(
            "X is a sparse matrix; codes are compared with dense vectors. Reduce it first, for example with "
            "sklearn.decomposition.TruncatedSVD, or convert it with X.toarray() if it fits in memory."
        )
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"X has {rows.ndim} dimension(s); it must have two, with one row per item. Reshape it.")
    _refuse_gaps(rows)
    if len(rows) <= N_NEAREST:
        raise ValueError(
            f"There are {len(rows)} rows; comparing codes with vectors needs at least {N_NEAREST + 1}: one to hold "
            f"out, and its {N_NEAREST} nearest neighbors. Give more rows, or fit a hasher and fill a collection "
            "yourself."
        )
    if n_queries is None:
        n_queries = max(1, min(_MOST_QUERIES, len(rows) // 10))
    n_queries = check_integer(n_queries, "n_queries", low=1, high=len(rows) - N_NEAREST)
    order = check_random_state(random_state).permutation(len(rows))
    labels = check_labels(y, len(rows))
    return HeldOut(rows, None if y is None else labels, labels.index, order[:n_queries], order[n_queries:])


def _refuse_gaps(rows: np.ndarray) -> None:
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"X holds values of type {rows.dtype}; vectors must be numbers. Encode other columns first.")
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(
            f"X has NaN or infinite values in {counted(int(bad.sum()), 'row')}, the first in row {int(bad.argmax())}. "
            "Fill them in or leave these rows out: vectors with gaps have no distances to compare codes with."
        )


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One line of the comparison.

    ``precision_at_10`` and ``mean_average_precision`` are None without labels, ``pooled_area`` also for a search that
    tells no distances, ``recall_10_at_100`` if at most 100 rows are searched, and ``n_different_codes`` for a search by
    float numbers. ``reads_labels`` tells whether what is known of items includes their labels. ``model_bytes`` is what
    a query needs in addition to the items, once for all of them: the file of a hasher, the arrays of another method. It
    and ``fit_seconds`` are None for float search. ``total_bytes`` are those of all searched items and of the model.
    Times hold everything from a float query to its ten hits: ``one_query_milliseconds`` for a query that comes alone,
    ``batch_milliseconds`` for each of a hundred that come together.
    """

    name: str
    precision_at_10: float | None
    mean_average_precision: float | None
    pooled_area: float | None
    recall_10_at_10: float
    recall_10_at_100: float | None
    bytes_per_item: float
    model_bytes: int | None
    total_bytes: float
    n_different_codes: int | None
    fit_seconds: float | None
    one_query_milliseconds: float
    batch_milliseconds: float
    reads_labels: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the figures as text, one for each of ``COLUMNS``."""
        lists = (self.precision_at_10, self.mean_average_precision, self.pooled_area)
        shares = (*lists, self.recall_10_at_10, self.recall_10_at_100)
        kilobytes = None if self.model_bytes is None else self.model_bytes / 1000
        return (
            self.name,
            *(_shown(share, ".3f") for share in shares),
            f"{self.bytes_per_item:,g}",
            _shown(kilobytes, ",.1f"),
            f"{self.total_bytes / 1000:,.1f}",
            _shown(self.n_different_codes, ",d"),
            _shown(self.fit_seconds, ".2f"),
            f"{self.one_query_milliseconds:.3f}",
            f"{self.batch_milliseconds:.3f}",
        )

    def line(self) -> str:
        """Return the figures as a line of a Markdown table."""
        return f"| {' | '.join(self.cells())} |"


def _shown(number: float | None, how: str) -> str:
    return "-" if number is None else f"{number:{how}}"


class Search(Protocol):
    """Something that finds the nearest of the rows it was made of."""

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the k nearest rows, or of those ``among`` them, shape (n_queries, k)."""
        ...


class ByLabels:
    """Search of the label column alone, by the probability of each label; items without a label are at random."""

    def __init__(self, hasher: BaseHasher, labels: Labels) -> None:
        self.hasher = hasher
        self._columns = labels.positions_in(hasher.classes_)

    def distances(self, X: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return how unlikely the label of each item is."""
        posteriors = np.asarray(self.hasher.encode_queries(X).posteriors)
        columns = self._columns[among]
        return np.where(columns >= 0, 1.0 - posteriors[:, columns].astype(np.float64), 2.0)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        among = np.arange(len(self._columns)) if among is None else among
        found = np.empty((len(X), k), np.int64)
        for rows in tiles(len(X), _QUERIES_PER_BLOCK):
            found[rows] = among[np.argsort(self.distances(X[rows], among), axis=1, kind="stable")[:, :k]]
        return found


class ByRounded:
    """Exact search of vectors whose numbers are rounded, those of queries in the same way."""

    def __init__(self, X: np.ndarray, *, to_signs: bool) -> None:
        self._unit = None if to_signs else np.maximum(np.abs(X).max(axis=0), np.finfo(np.float32).tiny) / 127.0
        self._rounded = ByVectors(self._round(X))
        self.bytes_per_item = n_bytes(X.shape[1]) if to_signs else X.shape[1]

    def _round(self, X: np.ndarray) -> np.ndarray:
        if self._unit is None:
            return np.where(X >= 0, np.float32(1), np.float32(-1))
        return np.round(X / self._unit).clip(-127, 127) * self._unit

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        return self._rounded.nearest(self._round(X), k, among)


class ByCodes:
    """Search of codes by the index of their hasher; equal distances are ordered by the scores of the query."""

    def __init__(self, hasher: BaseHasher, codes: BinaryCodes) -> None:
        self.hasher, self.codes = hasher, codes
        self.index = make_index(codes, hasher=hasher)

    @property
    def takes_vectors(self) -> bool:
        """Whether queries keep their full precision."""
        return isinstance(self.index, ResidualIndex)

    def queries(self, X: np.ndarray) -> EncodedQueries:
        """Return rows as the index wants them."""
        return self.hasher.encode_queries(X)

    def distances(self, X: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Return the distances of the index."""
        near = self.index.search(self.queries(X), len(among), among=among)
        distances = np.empty((len(X), len(self.codes)))
        np.put_along_axis(distances, near.ids, near.distances, axis=1)
        return distances[:, among]

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        queries = self.queries(X)
        scores = self.hasher.decision_function(X) if "scores" in self.index.supports else None
        return self.index.search(queries, k, among=among, scores=scores).ids


class ByEstimates:
    """RaBitQ's estimates of the distances from float queries."""

    #: Two float16 numbers beside each code: its scale and its squared norm.
    EXTRA_BYTES = 4

    def __init__(self, X: np.ndarray, n_bits: int) -> None:
        # Squared norms near 1 fit into float16, and the order of distances does not depend on the unit.
        self._unit = max(float(np.sqrt(np.mean((X - X.mean(axis=0)) ** 2) * X.shape[1])), np.finfo(np.float32).tiny)
        rows = X / self._unit
        self._hasher = RaBitQ(n_bits, random_state=0).fit(rows)
        sketch = self._hasher.sketch(rows)
        self._items = Sketch(sketch.codes, _as_stored(sketch.scales), _as_stored(sketch.squared_norms))

    @property
    def model_bytes(self) -> int:
        """Bytes of the rotation and the center."""
        return int(self._hasher.components_.nbytes + self._hasher.mean_.nbytes)

    def nearest(self, X: np.ndarray, k: int, among: np.ndarray | None = None) -> np.ndarray:
        among = np.arange(len(self._items)) if among is None else among
        found = np.empty((len(X), k), np.int64)
        for rows in tiles(len(X), _QUERIES_PER_BLOCK):
            distances = self._hasher.asymmetric_distances(X[rows] / self._unit, self._items)[:, among]
            first = np.argpartition(distances, k - 1, axis=1)[:, :k]
            order = np.take_along_axis(distances, first, axis=1).argsort(axis=1, kind="stable")
            found[rows] = among[np.take_along_axis(first, order, axis=1)]
        return found


def _as_stored(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.float16).astype(numbers.dtype)


@dataclass(frozen=True, slots=True)
class Measured:
    """The line of a method, and the positions of what it finds first for each query."""

    result: MethodResult
    found: np.ndarray


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is known of a method before it searches."""

    name: str
    bytes_per_item: float
    model_bytes: int | None = None
    fit_seconds: float | None = None
    n_different_codes: int | None = None
    reads_labels: bool = False


@dataclass(slots=True)
class Bench:
    """Measures one search after another with the same queries and items."""

    split: HeldOut
    exact: Measured = field(init=False)
    all_items_milliseconds: float = field(init=False)
    _nearest_vectors: np.ndarray = field(init=False)
    _class_first: Measured | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        search = ByVectors(self.split.items)
        self._nearest_vectors = search.nearest(self.split.queries, N_NEAREST)
        self.exact = self._measured(search, _Origin(FLOAT_SEARCH, self.split.vector_bytes))
        of_all = ByVectors(self.split.X)
        self.all_items_milliseconds = _times(lambda X: of_all.nearest(X, N_NEAREST), self.split.queries)[0]

    def of_hasher(self, hasher: BaseHasher, fit_seconds: float) -> list[Measured]:
        """Measure the codes of a fitted hasher, and those of items without labels if these are different.

        If hits have probabilities, the labels of items alone, ordered by these, come last.
        """
        items, labels = self.split.items, self.split.item_labels
        codes, unlabeled = hasher.encode_training(items, labels), hasher.encode_database(items)
        search = ByCodes(hasher, codes)
        name = f"{type(hasher).__name__} {FLOAT_QUERIES}" if search.takes_vectors else type(hasher).__name__
        differs = labels is not None and codes != unlabeled
        measured = [self._of_codes(search, name, fit_seconds, reads_labels=differs)]
        if differs:
            measured.append(self._of_codes(ByCodes(hasher, unlabeled), f"{name}, {FROM_VECTORS}", fit_seconds))
        if labels is not None and "probability" in hasher.supports:
            origin = _Origin(LABEL_COLUMN, 0, file_bytes(hasher), fit_seconds, reads_labels=True)
            measured.append(self._measured(ByLabels(hasher, labels), origin))
        return measured

    def reliability_of(self, hasher: BaseHasher) -> Reliability | None:
        """Return how right probabilities are for pairs of held-out rows, None if hits have none.

        One of a pair is asked for, and the other one an item that is coded from its vector. No row is its own item.
        """
        index = self.split.label_index[self.split.query]
        known = np.flatnonzero(index >= 0)
        if "probability" not in hasher.supports or hasher.words is None or len(known) < 2:
            return None
        rows, classes = self.split.queries[known], index[known]
        items = hasher.words.posteriors_of(hasher.encode_database(rows))
        said = np.clip(np.asarray(hasher.encode_queries(rows).posteriors) @ items.T, 0.0, 1.0)
        pairs = ~np.eye(len(rows), dtype=np.bool_)
        return reliability(said[pairs], (classes[:, None] == classes)[pairs])

    def of_class_first(self) -> Measured:
        """Measure float search within the class that logistic regression gives a query, then among the other items.

        It learns from the labels that hashers learn from. An item without a label is of the class that it predicts.
        """
        if self._class_first is None:
            items, index = self.split.items, self.split.label_index[self.split.base]
            search, seconds = _timed(lambda: ByClass(items, index))
            size = self.split.vector_bytes + search.class_bytes
            origin = _Origin(CLASS_FIRST, size, search.model_bytes, seconds, reads_labels=True)
            self._class_first = self._measured(search, origin)
        return self._class_first

    def of_int8(self) -> Measured:
        """Measure the vectors with one byte per number."""
        search = ByRounded(self.split.items, to_signs=False)
        return self._measured(search, _Origin("int8", search.bytes_per_item))

    def of_signs(self) -> Measured:
        """Measure the signs of the numbers alone."""
        search = ByRounded(self.split.items, to_signs=True)
        return self._measured(search, _Origin("sign", search.bytes_per_item))

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
        from .product_quantizer import ProductQuantizer  # needs FAISS

        size = n_bytes(n_bits)
        search, seconds = _timed(lambda: ProductQuantizer(size).fit(self.split.items))
        return self._measured(search, _Origin(f"PQ {FLOAT_QUERIES}", size, search.model_bytes, seconds))

    def _of_codes(self, search: ByCodes, name: str, fit_seconds: float, *, reads_labels: bool = False) -> Measured:
        codes, hasher = search.codes, search.hasher
        times = _times(lambda X: search.index.search(search.queries(X), N_NEAREST), self.split.queries)
        precision = None
        if self.split.labeled is not None:
            asked, known = self.split.labeled
            some = search.queries(self.split.queries[asked])
            if hasher.words is None:
                precision = self._precision_of_codes(some.codes, codes[known])
            else:
                precision = self.split.precision(search.index.search(some, N_NEAREST, among=np.flatnonzero(known)).ids)
        n_different = len(np.unique(codes.packed, axis=0))
        origin = _Origin(name, codes.packed.shape[1], file_bytes(hasher), fit_seconds, n_different, reads_labels)
        return self._put_together(search, origin, precision, times)

    def _precision_of_codes(self, queries: BinaryCodes, items: BinaryCodes) -> float:
        """Return the precision averaged over all orders of equal distances, of the queries and items with labels."""
        assert self.split.labels is not None
        of_queries, of_items = (self.split.labels.take(rows) for rows in (self.split.query, self.split.base))
        asked, known = of_queries.take(of_queries.labeled), of_items.take(of_items.labeled)
        return precision_at(queries, items, asked, known, N_NEAREST)

    def _measured(self, search: Search, origin: _Origin) -> Measured:
        queries = self.split.queries
        times = _times(lambda X: search.nearest(X, N_NEAREST), queries)
        precision = None
        if self.split.labeled is not None:
            asked, known = self.split.labeled
            # A neighbor without a label is neither right nor wrong.
            precision = self.split.precision(search.nearest(queries[asked], N_NEAREST, np.flatnonzero(known)))
        return self._put_together(search, origin, precision, times)

    def _put_together(
        self, search: Search, origin: _Origin, precision: float | None, times: tuple[float, float]
    ) -> Measured:
        """Add the recall of the nearest vectors in a list of ten and in a longer one."""
        found = search.nearest(self.split.queries, N_SHORTLIST if self.split.has_recall else N_NEAREST)
        lists = self._whole_lists(search)
        result = MethodResult(
            name=origin.name,
            precision_at_10=precision,
            mean_average_precision=None if lists is None else lists.mean_average_precision,
            pooled_area=lists.pooled_area if lists and isinstance(search, ByCodes | ByLabels | ByVectors) else None,
            recall_10_at_10=recall(self._nearest_vectors, found[:, :N_NEAREST]),
            recall_10_at_100=recall(self._nearest_vectors, found) if self.split.has_recall else None,
            bytes_per_item=origin.bytes_per_item,
            model_bytes=origin.model_bytes,
            total_bytes=len(self.split.base) * origin.bytes_per_item + (origin.model_bytes or 0),
            n_different_codes=origin.n_different_codes,
            fit_seconds=origin.fit_seconds,
            one_query_milliseconds=times[0],
            batch_milliseconds=times[1],
            reads_labels=origin.reads_labels,
        )
        return Measured(result, found[:, :N_NEAREST])

    def _whole_lists(self, search: Search) -> ListQuality | None:
        """Return how labeled items are ordered for some of the labeled queries, None if there are too few labels."""
        if self.split.labeled is None:
            return None
        asked, known = self.split.labeled
        among = np.flatnonzero(known)
        rows = np.flatnonzero(asked)[: max(1, _MOST_PAIRS // len(among))]
        X, item_class = self.split.queries[rows], self.split.label_index[self.split.base][among]
        same = self.split.label_index[self.split.query][rows][:, None] == item_class
        if isinstance(search, ByCodes | ByLabels | ByVectors):
            return list_quality(search.distances(X, among), same)
        # Only the order is known.
        ranks, place = np.empty(same.shape), np.full(len(known), -1)
        place[among] = np.arange(len(among))
        np.put_along_axis(ranks, place[search.nearest(X, len(among), among)], np.arange(len(among))[None], axis=1)
        return list_quality(ranks, same)


def recall(nearest: np.ndarray, found: np.ndarray) -> float:
    """Return the share of the nearest rows that were found, averaged over queries."""
    shares = [len(np.intersect1d(a, b)) / len(a) for a, b in zip(nearest, found, strict=True)]
    return float(np.mean(shares))


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def file_bytes(hasher: BaseHasher) -> int:
    """Return the size of the file that a fitted hasher is saved to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hasher.star"
        hasher.save(path)
        return path.stat().st_size


def _times(search: Callable[[np.ndarray], object], queries: np.ndarray) -> tuple[float, float]:
    """Return the milliseconds of a query that comes alone, and of each of a hundred that come together."""
    batch = np.resize(queries, (BATCH, queries.shape[1]))
    for rows in (batch[:1], batch):
        search(rows)  # compiles the loops
    alone = [_timed(lambda row=row: search(batch[row : row + 1]))[1] for row in range(_N_TIMED)]  # type: ignore[misc]
    together = [_timed(lambda: search(batch))[1] for _ in range(_N_BATCHES)]
    return 1e3 * float(np.median(alone)), 1e3 * float(np.median(together)) / BATCH
