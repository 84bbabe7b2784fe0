"""Searches of one state of a collection: queries in, items out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import tiles
from .._common.validation import SamplesLike, check_choice, check_integer
from ..codes.binary import BinaryCodes
from ..hashers.base import BaseHasher
from ..hashers.prepared import inner_hasher, vector_hasher, without_steps
from ..hashers.star.novelty import check_reject
from ..index.residual import VectorQueries, class_fields
from .filters import Filters
from .items import Row, label_of, metadata_of
from .state import State
from .store import Store
from .vectors import called_with_vectors, kept_rows

# Candidates from codes, reordered by the exact distance between the query and the vectors that are kept.

METRICS = ("euclidean", "cosine")
# Many items share a short code, and which of them are compared would be chance: on a table of 600 rows, 7 bits and the
# usual 10 candidates find .45 of the nearest rows.
_SHORT, _OVERSAMPLE_SHORT = 16, 200
_OVERSAMPLE = 10  # on AG News with ITQ at 128 bits, 10 finds .990 of the nearest vectors and 5 finds .958
# Of the items nearest by the index, so many times the candidates are ordered by the scores of the query. On AG News,
# with ITQ at 64 and 128 bits, 10 gives the recall of ordering all items by scores (.970, .990); 3 loses .010.
_SHORTLIST = 10
_BYTES_AT_ONCE = 1 << 25  # 32 MB for the candidates of a batch
_SIGNS_OF_BYTES = BinaryCodes(np.arange(256, dtype=np.uint8)[:, None], 8).to_signs().astype(np.float64)


@dataclass(frozen=True, slots=True)
class Rescoring:
    """How to rescore: the vectors of the queries, candidates per result, the distance that decides, items of the class.

    The ``class_first`` nearest items of the query's class come before all others.
    """

    vectors: np.ndarray
    oversample: int
    metric: str
    class_first: int

    def n_listed(self, k: int, *, by_scores: bool) -> int:
        """Return how many items of the index candidates are chosen from."""
        chooses = by_scores or min(k, self.class_first) > 0
        return k * self.oversample * (_SHORTLIST if chooses else 1)

    def spans(self, k: int) -> list[slice]:
        """Return which queries to rescore together."""
        n_columns = max(self.vectors.shape[1], _SHORTLIST)
        n_queries = _BYTES_AT_ONCE // (8 * k * self.oversample * n_columns)
        return list(tiles(len(self.vectors), max(1, min(64, n_queries))))

    def candidates(self, listed: Listed, products: np.ndarray | None, k: int) -> Listed:
        """Choose what to compare by vectors, by the products of the codes with the scores of the query if they count.

        Of each item of the class that must come first, there are ``oversample`` candidates of that class, too.
        """
        n_candidates, n_of_class = k * self.oversample, min(k, self.class_first) * self.oversample
        order = np.arange(len(listed.ids))
        if products is not None and len(order) > n_candidates:
            order = np.lexsort((listed.ids, -products))
        return listed.taken(_class_first(order, listed.differs, n_of_class)[:n_candidates])

    def best(self, candidates: Listed, exact: np.ndarray, k: int) -> Rescored:
        """Return the k best candidates, given the distances of their vectors."""
        order = np.lexsort((candidates.ids, exact))
        best = _class_first(order, candidates.differs, self.class_first)[:k]
        return Rescored(candidates.distances[best], candidates.ids[best], exact[best])


@dataclass(frozen=True, slots=True)
class RescoringOptions:
    """What the caller of a search says about rescoring; None leaves it to the collection."""

    rescore: bool | None
    oversample: int | None
    metric: str | None
    class_first: int | None

    def apply_to(self, state: State) -> bool:
        """Return whether to rescore; refuse options that would have no effect."""
        if self.rescore or (self.rescore is None and state.vectors is not None):
            return True
        for name in ("oversample", "metric", "class_first"):
            value = getattr(self, name)
            if value is not None:
                reason, advice = "this collection keeps no vectors", "make one that does, with vectors='float16'"
                if state.vectors is not None:
                    reason, advice = "rescore is False", "leave out rescore=False"
                raise ValueError(
                    f"{name} is {value!r}, and {reason}. It says how searches compare vectors: leave it out, or "
                    f"{advice}."
                )
        return False

    def checked(self, state: State, vectors: np.ndarray) -> Rescoring:
        """Return how to rescore queries with these vectors."""
        class_first = state.index.class_first
        if self.class_first is not None:
            class_first = check_integer(self.class_first, "class_first", low=0)
            if class_first and not state.index.class_bits:
                raise ValueError(
                    f"class_first is {class_first}, and the codes of a {type(state.hasher).__name__} do not begin "
                    "with a class. Leave it out, or use a HybridHasher."
                )
        usual = _OVERSAMPLE_SHORT if state.hasher.n_bits_ <= _SHORT else _OVERSAMPLE
        return Rescoring(
            vectors,
            usual if self.oversample is None else check_integer(self.oversample, "oversample", low=1),
            "euclidean" if self.metric is None else check_choice(self.metric, "metric", METRICS),
            class_first,
        )


class Rescored(NamedTuple):
    """The results of one query, nearest first: distances of the index, ids, and distances between vectors."""

    distances: np.ndarray
    ids: np.ndarray
    exact: np.ndarray


class Listed(NamedTuple):
    """Items near one query, nearest first; ``differs`` says whether their class is another one than the query's."""

    distances: np.ndarray
    ids: np.ndarray
    differs: np.ndarray

    def taken(self, places: np.ndarray) -> Listed:
        return Listed(self.distances[places], self.ids[places], self.differs[places])


def rescored_neighbors(
    state: State,
    store: Store,
    codes: Any,
    scores: np.ndarray | None,
    k: int,
    rescoring: Rescoring,
    among: np.ndarray | None,
) -> Iterator[Rescored]:
    """Yield the k best of ``k * oversample`` candidates of each query, by exact distance and then by id.

    The index makes a shortlist, from which scores choose the candidates; without scores, the index itself does.
    ``codes`` are queries as the index takes them.
    """
    n_listed = rescoring.n_listed(k, by_scores=scores is not None)
    for span in rescoring.spans(k):
        shortlists = _shortlists(state, codes[span], n_listed, among)
        for row, listed in zip(range(span.start, span.stop), shortlists, strict=True):
            products = None
            if scores is not None and len(listed.ids) > k * rescoring.oversample:
                products = products_of(state, listed.ids, scores[row])
            candidates = rescoring.candidates(listed, products, k)
            vectors = state.vectors_of(store, candidates.ids.tolist())
            yield rescoring.best(candidates, exact_distances(rescoring.vectors[row], vectors, rescoring.metric), k)


def exact_distances(query: np.ndarray, vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return the Euclidean distances between a query and vectors, or 1 minus the cosines; a zero vector has cosine 0.

    Equal vectors get exactly equal distances, whatever other vectors are compared in the same call.
    """
    if metric == "euclidean":
        return np.sqrt(((vectors - query) ** 2).sum(axis=1))
    norms = np.sqrt((vectors**2).sum(axis=1)) * np.sqrt((query**2).sum())
    products = (vectors * query).sum(axis=1)
    return 1.0 - np.divide(products, norms, out=np.zeros(len(vectors)), where=norms > 0)


def _shortlists(state: State, codes: Any, n: int, among: np.ndarray | None) -> Iterator[Listed]:
    """Yield the n items of the index that are nearest to each query."""
    class_bits = state.index.class_bits
    fields = class_fields(codes.codes if isinstance(codes, VectorQueries) else codes, class_bits)
    for field, distances, ids in zip(fields, *state.index.search(codes, n, among=among), strict=True):
        differs = np.zeros(len(ids), np.bool_)
        if class_bits:
            differs = class_fields(state.index.reconstruct(ids), class_bits) != field
        yield Listed(distances, ids, differs)


def products_of(state: State, ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the inner products of the codes of items with scores; a class at the beginning does not count."""
    packed = state.index.reconstruct(ids).packed
    padded = np.zeros(8 * packed.shape[1])
    padded[: len(scores)] = scores
    padded[: state.index.class_bits] = 0.0
    # One table per byte: equal codes get exactly equal products, which a matrix product does not promise.
    tables = padded.reshape(-1, 8) @ _SIGNS_OF_BYTES.T
    products: np.ndarray = tables[np.arange(packed.shape[1]), packed].sum(axis=1)
    return products


def _class_first(order: np.ndarray, differs: np.ndarray, n_first: int) -> np.ndarray:
    """Return places in the same order, but the first ``n_first`` of the query's class before all others."""
    first = np.zeros(len(order), np.bool_)
    first[np.flatnonzero(~differs[order])[:n_first]] = True
    return np.concatenate([order[first], order[~first]])


class Hit(NamedTuple):
    """An item near a query.

    ``distance`` is the Hamming distance of the codes, or that of the index of a :class:`starshl.HybridHasher`, in which
    another class counts. ``rescored`` is the distance of the vectors if these decided the order, and ``code_from`` says
    what the item's code follows from: "label" or "vector".
    """

    id: int
    distance: float
    reference: str | None
    metadata: dict[str, Any]
    label: str | int | bool | None = None
    code_from: str = "vector"
    rescored: float | None = None


def id_of(hit: Hit | int) -> int:
    """Return the id of a hit, or the id itself."""
    if isinstance(hit, Hit):
        return hit.id
    if not isinstance(hit, Integral):
        raise TypeError(
            f"hits holds a {type(hit).__name__}; it must hold hits or ids of one query. search returns one list per "
            "query: pass one of them, such as search(X[:1])[0]."
        )
    return int(hit)


@dataclass(frozen=True, slots=True)
class Queries:
    """Codes to search for, with the real-valued scores behind them if these are to order items."""

    codes: Any  # what the index takes: BinaryCodes or VectorQueries
    scores: np.ndarray | None = None
    rescoring: Rescoring | None = None

    @classmethod
    def of(
        cls,
        state: State,
        X: SamplesLike | None,
        items: ArrayLike | None,
        *,
        with_scores: bool,
    ) -> Self:
        """Encode samples, or take the stored codes of items."""
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        if with_scores:
            check_has_scores(X)
        if items is not None:
            return cls(state.index.reconstruct(items))
        hasher = state.hasher if X is None else vector_hasher(state.hasher, X)
        if not with_scores:
            return cls(getattr(hasher, "encode_queries", hasher.encode)(X))
        scores = hasher.decision_function(X)
        return cls(state.hasher.codes_of_scores(scores), scores)

    @classmethod
    def to_rescore(
        cls,
        state: State,
        store: Store,
        X: SamplesLike | None,
        items: ArrayLike | None,
        options: RescoringOptions,
    ) -> Self:
        """Take vectors along, and scores, which choose the candidates; stored items have both.

        An index that compares vectors itself knows no scores. Its own distances choose the candidates.
        """
        n_columns = state.require_vectors().layout.n_columns
        by_scores = "scores" in state.index.supports
        found = cls.of(state, X, items, with_scores=X is not None and by_scores)
        if X is not None:
            return replace(found, rescoring=options.checked(state, kept_rows(state.hasher, X, n_columns)))
        vectors = state.vectors_of(store, np.asarray(items).tolist())
        bare = without_steps(state.hasher)
        scores = called_with_vectors(bare.decision_function, vectors) if by_scores else None
        return cls(found.codes, scores, options.checked(state, vectors))


def check_has_scores(X: SamplesLike | None) -> None:
    """Refuse a search by scores for stored items, whether or not rescoring would leave the scores out."""
    if X is None:
        raise ValueError("by_scores needs X: a stored item has a code, but no scores.")


def check_rejecting(reject: object, X: SamplesLike | None) -> float:
    """Return the share of known queries that may be rejected, which needs queries that are rows."""
    share = check_reject(reject)
    if X is None:
        raise ValueError("reject needs X: only rows can be compared with the training rows of the hasher.")
    return share


def search_nearest(state: State, store: Store, queries: Queries, k: int, filters: Filters) -> list[list[Hit]]:
    """Return the k nearest items of each query, or all of them if there are fewer."""
    passing = filters.passing(state, store)
    if queries.rescoring is None:
        nearest = state.index.search(queries.codes, k, among=passing, scores=queries.scores)
        return _hits(store, zip(nearest.distances, nearest.ids, strict=True))
    k = check_integer(k, "k", low=1)
    return _hits(store, rescored_neighbors(state, store, queries.codes, queries.scores, k, queries.rescoring, passing))


def search_within(state: State, store: Store, queries: Queries, radius: Any, filters: Filters) -> list[list[Hit]]:
    """Return all items within ``radius`` of each query."""
    near = state.index.search_radius(queries.codes, radius, among=filters.passing(state, store))
    return _hits(store, (near.of(query) for query in range(len(queries.codes))))


def novelty_of(hasher: BaseHasher, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, or say which hashers can tell."""
    if not hasattr(hasher, "novelty"):
        name = type(inner_hasher(hasher)).__name__
        raise ValueError(
            f"A {name} cannot tell whether a query is like its training rows. StarRidge, StarSHL and HybridHasher can: "
            "fit one of them and call replace_hasher."
        )
    return np.asarray(cast(Any, vector_hasher(hasher, X)).novelty(X))


def hits_without_distance(store: Store, ids: list[int]) -> list[Hit]:
    """Return what is stored of items, as hits at distance 0."""
    return [_hit(row, 0) for row in store.rows(ids)]


def _hits(store: Store, neighbors: Iterable[tuple[np.ndarray, ...]]) -> list[list[Hit]]:
    """Return what is stored of the neighbors, given as arrays of distances and ids, perhaps with exact distances."""
    columns = [tuple(column.tolist() for column in found) for found in neighbors]
    rows = {row.id: row for row in store.rows(sorted({item for _, ids, *_ in columns for item in ids}))}
    return [
        [_hit(rows[item], distance, *exact) for distance, item, *exact in zip(*found, strict=True)] for found in columns
    ]


def _hit(row: Row, distance: float, rescored: float | None = None) -> Hit:
    return Hit(row.id, distance, row.reference, metadata_of(row), label_of(row), row.code_from, rescored)
