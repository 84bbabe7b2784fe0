"""Measure what codes keep of vectors: fit on some rows and search for the others, by codes and by vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_random_state

from .._types import LabelsLike, Seed
from .._validation import as_label_array, check_integer, check_labels
from ..base import BaseHasher
from ..catalog import get_class
from ..codes import BinaryCodes
from ..evaluation.items import codes_of_training_rows
from ..evaluation.metrics import precision_at
from ..index import make_index
from .comparison import FROM_VECTORS, Comparison
from .figures import MethodFigures
from .verdict import verdict

__all__ = ["compare"]

# Recall: how many of the 10 nearest vectors are among the 100 nearest codes.
_N_NEAREST, _N_SHORTLIST = 10, 100
RIVALS = ("SignBinarizer", "ITQ", "LSHash")


@dataclass(frozen=True, slots=True)
class _Split:
    """Rows held out as queries, and the rows that they search; labels as given and as indices, -1 without a label."""

    X: np.ndarray
    labels: np.ndarray | None
    label_index: np.ndarray
    query: np.ndarray
    base: np.ndarray

    @property
    def has_recall(self) -> bool:
        return len(self.base) > _N_SHORTLIST

    @property
    def labeled(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Which queries and which searched rows have labels; None if precision cannot be measured."""
        asked, known = self.label_index[self.query] >= 0, self.label_index[self.base] >= 0
        return (asked, known) if asked.any() and known.sum() >= _N_NEAREST else None


def compare(
    X: ArrayLike,
    y: LabelsLike = None,
    *,
    hasher: BaseHasher,
    rivals: Sequence[str] = RIVALS,
    n_queries: int | None = None,
    random_state: Seed = 0,
) -> Comparison:
    """Compare a hasher with float search and with other methods of the catalog at equal length.

    ``rivals`` are names of the catalog. One that cannot make codes of this length from these vectors is left
    out, and the page says why. The other arguments are those of :func:`binarize`.
    """
    split = _split(np.asarray(X), y, n_queries, random_state)
    nearest_vectors, float_search = _search_vectors(split)
    own, unlabeled, n_bits = _measure(hasher, split, nearest_vectors)
    methods, left_out = [float_search, own, *([unlabeled] if unlabeled else [])], {}
    for name in rivals:
        if name == type(hasher).__name__:
            continue
        try:
            methods.append(_measure(get_class(name)(n_bits=n_bits), split, nearest_vectors)[0])
        except ValueError as error:
            # Only the requested hasher must fit these vectors.
            left_out[name] = " ".join(str(error).split())
    n_labeled_queries = int((split.label_index[split.query] >= 0).sum())
    return Comparison(
        n_queries=len(split.query),
        n_items=len(split.base),
        n_labeled_queries=n_labeled_queries,
        n_labeled_items=int((split.label_index[split.base] >= 0).sum()),
        precision_ceiling=_precision_ceiling(split),
        methods=methods,
        verdict=verdict(float_search, own, unlabeled, len(split.base), n_labeled_queries),
        left_out=left_out,
    )


def _split(X: np.ndarray, y: LabelsLike, n_queries: int | None, random_state: Seed) -> _Split:
    if len(X) <= _N_NEAREST:
        raise ValueError(
            f"There are {len(X)} rows; comparing codes with vectors takes at least {_N_NEAREST + 1}: one to hold out, "
            f"and its {_N_NEAREST} nearest neighbors. Give more rows, or fit a hasher and fill a collection yourself."
        )
    if n_queries is None:
        n_queries = max(1, min(1000, len(X) // 10))
    n_queries = check_integer(n_queries, "n_queries", low=1, high=len(X) - _N_NEAREST)
    order = check_random_state(random_state).permutation(len(X))
    labels = None if y is None else as_label_array(y)
    label_index = np.full(len(X), -1) if labels is None else check_labels(labels, len(X)).index
    return _Split(X, labels, label_index, order[:n_queries], order[n_queries:])


def _search_vectors(split: _Split) -> tuple[np.ndarray, MethodFigures]:
    """Return the 10 nearest vectors of each query by Euclidean distance, and what that search costs."""
    X, query, base = split.X, split.query, split.base
    searcher = NearestNeighbors(n_neighbors=_N_NEAREST, algorithm="brute").fit(X[base])
    started = time.perf_counter()
    nearest = searcher.kneighbors(X[query], return_distance=False)
    milliseconds = 1e3 * (time.perf_counter() - started) / len(query)
    precision = None
    if split.labeled is not None:
        asked, known = split.labeled
        of_labeled = nearest[asked]
        if not known.all():
            # As for codes: a neighbor without a label is neither right nor wrong.
            of_labeled = searcher.fit(X[base[known]]).kneighbors(X[query[asked]], return_distance=False)
        classes = split.label_index[base[known]][of_labeled]
        precision = float(np.mean(classes == split.label_index[query][asked, None]))
    size = X.dtype.itemsize * X.shape[1]
    recall = 1.0 if split.has_recall else None
    return nearest, MethodFigures("float search", size, None, precision, recall, None, milliseconds)


def _precision_ceiling(split: _Split) -> float | None:
    """Return the precision of a ranking that puts every labeled item of the query's class first."""
    if split.labeled is None:
        return None
    asked, known = split.labeled
    n_of_class = np.bincount(split.label_index[split.base][known], minlength=split.label_index.max() + 1)
    return float(np.mean(np.minimum(n_of_class[split.label_index[split.query][asked]], _N_NEAREST) / _N_NEAREST))


def _measure(
    hasher: BaseHasher, split: _Split, nearest_vectors: np.ndarray
) -> tuple[MethodFigures, MethodFigures | None, int]:
    """Fit a copy of the hasher; return its figures and the length of its codes.

    The second figures are those of items coded from their vectors alone; None if that makes no difference.
    """
    hasher, fit_seconds = _fitted(hasher, split)
    scores = hasher.decision_function(split.X[split.query])
    items, labels = split.X[split.base], _rows_of(split.labels, split.base)
    codes, unlabeled = codes_of_training_rows(hasher, items, labels), hasher.encode_database(items)
    name = type(hasher).__name__
    own = _figures(hasher, name, codes, scores, split, nearest_vectors, fit_seconds)
    if labels is None or codes == unlabeled:
        return own, None, codes.n_bits
    from_vectors = f"{name}, {FROM_VECTORS}"
    by_vectors = _figures(hasher, from_vectors, unlabeled, scores, split, nearest_vectors, fit_seconds)
    return own, by_vectors, codes.n_bits


def _figures(
    hasher: BaseHasher,
    name: str,
    codes: BinaryCodes,
    scores: np.ndarray,
    split: _Split,
    nearest_vectors: np.ndarray,
    fit_seconds: float,
) -> MethodFigures:
    queries = BinaryCodes.from_scores(scores)
    index = make_index(codes, hasher=hasher)
    index.search(queries, _N_NEAREST)  # compiles the loops
    started = time.perf_counter()
    index.search(queries, _N_NEAREST)
    milliseconds = 1e3 * (time.perf_counter() - started) / len(queries)
    recall = precision = None
    if split.has_recall:
        shortlist = index.search(queries, _N_SHORTLIST, scores=scores).ids
        shares = [len(np.intersect1d(a, b)) / _N_NEAREST for a, b in zip(nearest_vectors, shortlist, strict=True)]
        recall = float(np.mean(shares))
    if split.labeled is not None:
        asked, known = split.labeled
        query_classes, base_classes = split.label_index[split.query][asked], split.label_index[split.base][known]
        if hasattr(hasher, "make_index"):
            found = index.search(queries[asked], _N_NEAREST, among=np.flatnonzero(known)).ids
            precision = float(np.mean(split.label_index[split.base][found] == query_classes[:, None]))
        else:
            precision = precision_at(queries[asked], codes[known], query_classes, base_classes, _N_NEAREST)
    n_different = len(np.unique(codes.packed, axis=0))
    return MethodFigures(name, codes.packed.shape[1], n_different, precision, recall, fit_seconds, milliseconds)


def _fitted(hasher: BaseHasher, split: _Split) -> tuple[BaseHasher, float]:
    """Return a copy of the hasher fitted on the searched rows, and the seconds that took."""
    hasher = clone(hasher)
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=0)
    started = time.perf_counter()
    hasher.fit(split.X[split.base], _rows_of(split.labels, split.base))
    return hasher, time.perf_counter() - started


def _rows_of(labels: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if labels is None else labels[rows]
