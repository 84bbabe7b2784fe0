"""Binarize my embeddings: vectors in; a collection of codes, and a page that says what they cost, out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_random_state

from .._files import write_atomically
from .._metadata import metadata_texts
from .._validation import check_integer, check_labels
from ..base import BaseHasher
from ..catalog import get_class
from ..evaluation.metrics import precision_at
from ..index import make_index
from ..index.base import check_ids
from .entries import reference_texts
from .filling import appearing_collection

__all__ = ["Binarization", "Contestant", "binarize", "compare"]

# Recall: how many of the 10 nearest vectors are among the 100 nearest codes.
_TRUE, _SHORTLIST = 10, 100
RIVALS = ("SignBinarizer", "ITQ", "LSHash")


@dataclass(frozen=True, slots=True)
class Contestant:
    """One line of the comparison; figures that need labels, or more than 100 rows to search, are None without them."""

    name: str
    bytes_per_item: float
    precision_at_10: float | None
    recall_10_at_100: float | None
    fit_seconds: float | None
    search_milliseconds: float


@dataclass(frozen=True, slots=True)
class Binarization:
    """What :func:`binarize` did: held-out queries, database rows, and the contestants, float search first.

    ``left_out`` tells of methods that were to be compared, too, why they could not be.
    """

    n_queries: int
    n_items: int
    contestants: list[Contestant]
    left_out: dict[str, str] = field(default_factory=dict)

    def page(self) -> str:
        """Return the comparison as one page of Markdown."""
        lines = [
            "# Codes against vectors",
            "",
            f"{self.n_queries} rows, drawn at random, were held out as queries; the other {self.n_items} were "
            "fitted on and searched.",
            "",
            "| method | bytes an item | precision at 10 | recall of 10 in 100 | fit, s | search, ms a query |",
            "|---|---|---|---|---|---|",
        ]
        for one in self.contestants:
            figures = (one.precision_at_10, one.recall_10_at_100, one.fit_seconds)
            shown = " | ".join("-" if figure is None else f"{figure:.3f}" for figure in figures)
            lines.append(f"| {one.name} | {one.bytes_per_item:g} | {shown} | {one.search_milliseconds:.4f} |")
        lines += [f"\n{name} was left out: {reason}" for name, reason in self.left_out.items()]
        lines += [
            "",
            "Precision at 10: the share of the query's class among the 10 nearest, averaged over all orders of "
            "equal distances. Recall of 10 in 100: the share of the 10 nearest vectors that are among the 100 "
            "nearest codes; equal distances are ordered by the real-valued scores of the query. It says nothing, and "
            "is not shown, if no more than 100 rows are searched.",
            "",
        ]
        return "\n".join(lines)


def binarize(
    folder: str | os.PathLike,
    X,
    y=None,
    *,
    hasher: BaseHasher,
    ids=None,
    metadata=None,
    references=None,
    n_queries: int | None = None,
    random_state=0,
    feature_names: Sequence[str] | None = None,
) -> Binarization:
    """Turn vectors into a searchable collection and compare its codes with the vectors themselves.

    The hasher is compared on held-out queries with float search and with the plain binarizers of the catalog
    at equal length (:func:`compare`), then fitted on all rows, and the collection of all rows is written. It is
    there complete, or not at all.

    Parameters
    ----------
    folder : path
        The new collection; the comparison lies in it as ``comparison.md`` and ``comparison.json``.
    X : array of shape (n_items, n_features)
    y : array of shape (n_items,), default=None
        Labels; -1, NaN or None where there is none.
    hasher : BaseHasher
        Not fitted; its ``n_bits`` sets the length of all codes.
    ids, metadata, references : as in :meth:`Collection.add`
    n_queries : int, default=None
        Rows to hold out: a tenth, at most 1,000, by default.
    random_state : int, default=0
        Which rows are held out.
    feature_names : sequence of str, default=None
        Names of the columns of X, kept with the hasher, so that later tables may have them in any order.
    """
    if Path(folder).exists():
        raise FileExistsError(f"{os.fspath(folder)!r} exists already. Choose another folder.")
    # Before the fitting, which may take hours.
    if ids is not None:
        ids = check_ids(ids, len(X))
    metadata_texts(metadata, len(X))
    reference_texts(references, len(X))
    found = compare(X, y, hasher=hasher, n_queries=n_queries, random_state=random_state)
    fitted = clone(hasher).fit(X, y)
    if feature_names is not None:
        fitted.feature_names_in_ = np.array(feature_names, dtype=object)
    with appearing_collection(folder, fitted) as collection:
        collection.add(codes=fitted.encode(X), ids=ids, metadata=metadata, references=references)
        write_atomically(collection.folder / "comparison.md", found.page().encode())
        write_atomically(collection.folder / "comparison.json", json.dumps(asdict(found), indent=1).encode())
    return found


def compare(
    X,
    y=None,
    *,
    hasher: BaseHasher,
    rivals: Sequence[str] = RIVALS,
    n_queries: int | None = None,
    random_state=0,
) -> Binarization:
    """Compare a hasher with float search and with other methods of the catalog at equal length.

    ``rivals`` are names of the catalog. One that cannot make codes of this length from these vectors is left
    out, and the page says why.
    """
    X = np.asarray(X)
    if len(X) <= _TRUE:
        raise ValueError(
            f"There are {len(X)} rows; comparing codes with vectors takes at least {_TRUE + 1}: one to hold out, and "
            f"its {_TRUE} nearest neighbors. Give more rows, or use `starshl fit` and `starshl index build`."
        )
    if n_queries is None:
        n_queries = max(1, min(1000, len(X) // 10))
    n_queries = check_integer(n_queries, "n_queries (--queries)", low=1, high=len(X) - _TRUE)
    order = check_random_state(random_state).permutation(len(X))
    query, base = order[:n_queries], order[n_queries:]
    labels = None if y is None else np.asarray(y)
    index = None if y is None else check_labels(labels, len(X)).index
    exact, float_search = _float_search(X, index, query, base)
    contestants, left_out = [float_search], {}
    names = [name for name in rivals if name != type(hasher).__name__]
    hashers = [hasher] + [get_class(name)(n_bits=hasher.n_bits) for name in names]
    for one in hashers:
        try:
            contestants.append(_measure(one, X, labels, index, query, base, exact))
        except ValueError as error:
            # Only the hasher that was asked for has to fit these vectors.
            if one is hasher:
                raise
            left_out[type(one).__name__] = " ".join(str(error).split())
    return Binarization(n_queries, len(base), contestants, left_out)


def _float_search(X, index, query, base) -> tuple[np.ndarray, Contestant]:
    """Return the 10 nearest vectors of each query by Euclidean distance, and what finding them costs."""
    searcher = NearestNeighbors(n_neighbors=_TRUE, algorithm="brute").fit(X[base])
    started = time.perf_counter()
    exact = searcher.kneighbors(X[query], return_distance=False)
    milliseconds = 1e3 * (time.perf_counter() - started) / len(query)
    precision = None
    asked, known = _labeled(index, query), _labeled(index, base)
    if asked.any() and known.sum() >= _TRUE:
        nearest = exact[asked]
        if not known.all():
            # As for codes: a neighbor without a label is neither right nor wrong.
            nearest = searcher.fit(X[base[known]]).kneighbors(X[query[asked]], return_distance=False)
        precision = float(np.mean(index[base[known]][nearest] == index[query][asked, None]))
    size = X.dtype.itemsize * X.shape[1]
    recall = 1.0 if len(base) > _SHORTLIST else None
    return exact, Contestant("float search", size, precision, recall, None, milliseconds)


def _measure(hasher, X, labels, index, query, base, exact) -> Contestant:
    hasher = clone(hasher)
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=0)
    started = time.perf_counter()
    hasher.fit(X[base], None if labels is None else labels[base])
    fit_seconds = time.perf_counter() - started
    scores = hasher.decision_function(X[query])
    queries, codes = hasher.encode(X[query]), hasher.encode(X[base])
    searched = make_index(codes)
    searched.search(queries, _TRUE)
    started = time.perf_counter()
    searched.search(queries, _TRUE)
    milliseconds = 1e3 * (time.perf_counter() - started) / len(query)
    recall = None
    if len(base) > _SHORTLIST:
        shortlist = searched.search(queries, _SHORTLIST, scores=scores).ids
        shares = [len(np.intersect1d(a, b)) / _TRUE for a, b in zip(exact, shortlist, strict=True)]
        recall = float(np.mean(shares))
    precision = None
    asked, known = _labeled(index, query), _labeled(index, base)
    if asked.any() and known.sum() >= _TRUE:
        precision = precision_at(queries[asked], codes[known], index[query][asked], index[base][known], _TRUE)
    size = codes.packed.shape[1]
    return Contestant(type(hasher).__name__, size, precision, recall, fit_seconds, milliseconds)


def _labeled(index: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    return np.zeros(len(rows), bool) if index is None else index[rows] >= 0
