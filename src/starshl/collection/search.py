"""Searches of one state of a collection: queries in, items out, in the order of codes or of kept vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import tiles
from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes
from ..exceptions import InputError
from ..hashers.base import BaseHasher
from ..index.residual import VectorQueries, class_fields
from .answers import Hit, Item, SearchResult
from .filters import passing_items
from .items import item_of
from .options import SearchOptions
from .state import State
from .store import Store
from .vectors import called_with_vectors, kept_rows

# Many items share a short code, and which of them are compared would be chance: on a table of 600 rows, 7 bits and the
# usual 10 candidates find .45 of the nearest rows.
_SHORT, _OVERSAMPLE_SHORT = 16, 200
_OVERSAMPLE = 10  # on AG News with ITQ at 128 bits, 10 finds .990 of the nearest vectors and 5 finds .958
# Of the items nearest by the index, so many times the candidates are ordered by the scores of the query. On AG News,
# with ITQ at 64 and 128 bits, 10 gives the recall of ordering all items by scores (.970, .990); 3 loses .010.
_SHORTLIST = 10
_BYTES_AT_ONCE = 1 << 25  # 32 MB for the candidates of a batch
_QUERIES_AT_ONCE = 256
_SIGNS_OF_BYTES = BinaryCodes(np.arange(256, dtype=np.uint8)[:, None], 8).to_signs().astype(np.float64)


@dataclass(frozen=True, slots=True)
class Queries:
    """Codes to search for, with the real-valued scores behind them if these are to order items."""

    codes: Any  # what the index takes: BinaryCodes or VectorQueries
    scores: np.ndarray | None = None
    rescoring: Rescoring | None = None

    @classmethod
    def of(
        cls, state: State, store: Store, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
    ) -> Self:
        """Encode samples, or take the stored codes of items, with what the options need besides."""
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        if is_rescored(options, state):
            return cls._to_rescore(state, store, X, items, options)
        return cls._encoded(state, X, items, with_scores=options.by_scores)

    @classmethod
    def _encoded(cls, state: State, X: SamplesLike | None, items: ArrayLike | None, *, with_scores: bool) -> Self:
        if items is not None:
            return cls(state.index.reconstruct(items))
        rows = cast(SamplesLike, X)
        hasher = state.hasher.for_rows(rows)
        if not with_scores:
            return cls(hasher.encode_queries(rows))
        scores = hasher.decision_function(rows)
        return cls(state.hasher.codes_of_scores(scores), scores)

    @classmethod
    def _to_rescore(
        cls, state: State, store: Store, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
    ) -> Self:
        """Take vectors along, and scores, which choose the candidates; stored items have both.

        An index that compares vectors itself knows no scores. Its own distances choose the candidates.
        """
        n_columns = state.require_vectors().layout.n_columns
        by_scores = "scores" in state.index.supports
        found = cls._encoded(state, X, items, with_scores=X is not None and by_scores)
        if X is not None:
            return replace(found, rescoring=rescoring_of(options, state, kept_rows(state.hasher, X, n_columns)))
        vectors = state.vectors_of(store, np.asarray(items).tolist())
        bare = state.hasher.without_steps()
        scores = called_with_vectors(bare.decision_function, vectors) if by_scores else None
        return cls(found.codes, scores, rescoring_of(options, state, vectors))

    def part(self, rows: slice) -> Queries:
        """Return some of the queries."""
        scores = None if self.scores is None else self.scores[rows]
        rescoring = None if self.rescoring is None else replace(self.rescoring, vectors=self.rescoring.vectors[rows])
        return Queries(self.codes[rows], scores, rescoring)

    def spans(self, options: SearchOptions, n_items: int) -> list[slice]:
        """Return which queries to search for together, so that what they find fits in memory."""
        if self.rescoring is not None:
            return self.rescoring.spans(options.n_nearest)
        # Each of them may find the whole collection.
        n_found = n_items if options.radius is not None else options.n_nearest
        n_queries = _BYTES_AT_ONCE // (16 * max(1, n_found))
        return tiles(len(self.codes), max(1, min(_QUERIES_AT_ONCE, n_queries)))


def find_items(
    state: State, store: Store, queries: Queries, options: SearchOptions, pause: Callable[[], None]
) -> list[SearchResult]:
    """Return what each query finds, rejected or not; ``pause`` is called before each piece of the work."""
    passing = passing_items(state, store, options.filters)
    found: list[SearchResult] = []

    def read(ids: list[int]) -> list[Item]:
        return [item_of(row, state.vocabulary) for row in store.rows(ids)]

    for span in queries.spans(options, len(state.index)):
        pause()
        found += found_of(_neighbors(state, store, queries.part(span), options, passing), options, read)
    return found


def _neighbors(
    state: State, store: Store, queries: Queries, options: SearchOptions, among: np.ndarray | None
) -> Iterable[tuple[np.ndarray, ...]]:
    if options.radius is not None:
        near = state.index.search_radius(queries.codes, cast(Any, options.radius), among=among)
        return [near.of(query) for query in range(len(queries.codes))]
    if queries.rescoring is not None:
        return rescored_neighbors(state, store, queries, queries.rescoring, options.n_nearest, among)
    nearest = state.index.search(queries.codes, options.n_nearest, among=among, scores=queries.scores)
    return zip(nearest.distances, nearest.ids, strict=True)


def found_of(
    neighbors: Iterable[tuple[np.ndarray, ...]], options: SearchOptions, read: Callable[[list[int]], Iterable[Item]]
) -> list[SearchResult]:
    """Return the first k neighbors of each query as hits, and how many there are.

    Neighbors are arrays of distances and ids, perhaps with distances of vectors. ``read`` returns the items of ids;
    those that it does not return are left out.
    """
    shown = [(len(found[1]), *(column[: options.k].tolist() for column in found)) for found in neighbors]
    items = {item.id: item for item in read(sorted({item for _, _, ids, *_ in shown for item in ids}))}

    def hits(columns: Sequence[list[Any]]) -> list[Hit]:
        listed = zip(*columns, strict=True)
        return [_hit(items[item], distance, *exact) for distance, item, *exact in listed if item in items]

    return [SearchResult(hits(columns), total) for total, *columns in shown]


def _hit(item: Item, distance: float, rescored: float | None = None) -> Hit:
    return Hit(item.id, distance, rescored, item.label, item.metadata, item.reference, item.code_from)


def rejecting(found: Iterable[SearchResult], novelty: np.ndarray, share: float) -> list[SearchResult]:
    """Leave nothing of what novel queries found; of queries like the training rows, about this share is novel, too."""
    limit = 1.0 - share
    return [
        replace(each, novelty=own) if own < limit else SearchResult([], 0, own)
        for each, own in zip(found, novelty.tolist(), strict=True)
    ]


def novelty_of(hasher: BaseHasher, X: SamplesLike) -> np.ndarray:
    """Return how different each query is from the training rows of the hasher, or say which hashers can tell."""
    hasher.require("novelty")
    return hasher.for_rows(X).novelty(X)


def is_rescored(options: SearchOptions, state: State) -> bool:
    """Return whether kept vectors decide the order; refuse options that would have no effect without them."""
    if options.radius is not None or options.rescore is not None:
        return bool(options.rescore)
    if state.vectors is not None:
        return True
    for name in ("oversample", "metric", "class_first"):
        value = getattr(options, name)
        if value is not None:
            raise InputError(
                "{parameter} is {value!r}, and this collection keeps no vectors",
                advice="It says how searches compare vectors: leave it out, or make one that does, with "
                "vectors='float16'.",
                parameter=name,
                value=value,
            )
    return False


def rescoring_of(options: SearchOptions, state: State, vectors: np.ndarray) -> Rescoring:
    """Return how to rescore queries with these vectors."""
    if options.class_first and not state.index.class_bits:
        raise InputError(
            "{parameter} is {value}, and the codes of a {hasher} do not begin with a class",
            advice="Leave it out, or use a HybridHasher.",
            parameter="class_first",
            value=options.class_first,
            hasher=type(state.hasher).__name__,
        )
    usual = _OVERSAMPLE_SHORT if state.hasher.n_bits_ <= _SHORT else _OVERSAMPLE
    return Rescoring(
        vectors,
        usual if options.oversample is None else options.oversample,
        options.metric or "euclidean",
        state.index.class_first if options.class_first is None else options.class_first,
    )


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

    def taken(self, positions: np.ndarray) -> Listed:
        return Listed(self.distances[positions], self.ids[positions], self.differs[positions])


def rescored_neighbors(
    state: State, store: Store, queries: Queries, rescoring: Rescoring, k: int, among: np.ndarray | None
) -> Iterator[Rescored]:
    """Yield the k best of ``k * oversample`` candidates of each query, by exact distance and then by id.

    The index makes a shortlist, from which scores choose the candidates; without scores, the index itself does.
    """
    scores = queries.scores
    n_listed = rescoring.n_listed(k, by_scores=scores is not None)
    for row, listed in enumerate(_shortlists(state, queries.codes, n_listed, among)):
        products = None
        if scores is not None and len(listed.ids) > k * rescoring.oversample:
            products = products_of(state, listed.ids, scores[row])
        candidates = rescoring.candidates(listed, products, k)
        vectors = state.vectors_of(store, candidates.ids.tolist())
        yield rescoring.best(candidates, exact_distances(rescoring.vectors[row], vectors, rescoring.metric), k)


def _shortlists(state: State, codes: Any, n: int, among: np.ndarray | None) -> Iterator[Listed]:
    """Yield the n items of the index that are nearest to each query."""
    class_bits = state.index.class_bits
    fields = class_fields(codes.codes if isinstance(codes, VectorQueries) else codes, class_bits)
    for field, distances, ids in zip(fields, *state.index.search(codes, n, among=among), strict=True):
        differs = np.zeros(len(ids), np.bool_)
        if class_bits:
            differs = class_fields(state.index.reconstruct(ids), class_bits) != field
        yield Listed(distances, ids, differs)


def _class_first(order: np.ndarray, differs: np.ndarray, n_first: int) -> np.ndarray:
    """Return positions in the same order, but the first ``n_first`` of the query's class before all others."""
    first = np.zeros(len(order), np.bool_)
    first[np.flatnonzero(~differs[order])[:n_first]] = True
    return np.concatenate([order[first], order[~first]])


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


def exact_distances(query: np.ndarray, vectors: np.ndarray, metric: str) -> np.ndarray:
    """Return the Euclidean distances between a query and vectors, or 1 minus the cosines; a zero vector has cosine 0.

    Equal vectors get exactly equal distances, whatever other vectors are compared in the same call.
    """
    if metric == "euclidean":
        return np.sqrt(((vectors - query) ** 2).sum(axis=1))
    norms = np.sqrt((vectors**2).sum(axis=1)) * np.sqrt((query**2).sum())
    products = (vectors * query).sum(axis=1)
    return 1.0 - np.divide(products, norms, out=np.zeros(len(vectors)), where=norms > 0)
