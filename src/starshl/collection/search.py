"""Searches of one state of a collection: queries in, items out, in the order of codes or of kept vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import tiles
from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes
from ..codes.queries import EncodedQueries
from ..codes.score_rule import LEAST_PROBABILITY, ScoreRule
from ..exceptions import InputError
from .answers import Hit, Item, SearchResult
from .filters import passing_items
from .guesses import Guesses, with_guesses
from .items import item_of
from .options import SearchOptions
from .state import State
from .store import Store
from .vectors import called_with_vectors, kept_rows

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher

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
    """What to search for, with the real-valued scores behind the codes if these are to order items."""

    encoded: EncodedQueries
    scores: np.ndarray | None = None
    rescoring: Rescoring | None = None

    @classmethod
    def of(
        cls, state: State, store: Store, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
    ) -> Self:
        """Encode samples, or take stored items, with what the options need besides."""
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        if options.min_probability is not None:
            state.require("probability")
        if options.by_scores and "scores" not in state.index.supports:
            raise InputError(
                "{parameter} orders items at equal Hamming distance, and this collection compares more than bits",
                advice="Leave it out: queries of a {method} keep their posteriors, which order items more finely.",
                parameter="by_scores",
                method=state.space.method,
            )
        if is_rescored(options, state):
            return cls._to_rescore(state, store, X, items, options)
        return cls._encoded(state, X, items, with_scores=options.by_scores)

    @classmethod
    def _encoded(cls, state: State, X: SamplesLike | None, items: ArrayLike | None, *, with_scores: bool) -> Self:
        if items is not None:
            return cls(state.shown_classes.pooled(state.index.queries_of(items)))
        rows = cast(SamplesLike, X)
        if not with_scores:
            return cls(state.shown_classes.pooled(state.encoded(rows)))
        scores = state.hasher.for_rows(rows).decision_function(rows)
        return cls(EncodedQueries(state.hasher.codes_of_scores(scores)), scores)

    @classmethod
    def _to_rescore(
        cls, state: State, store: Store, X: SamplesLike | None, items: ArrayLike | None, options: SearchOptions
    ) -> Self:
        """Take vectors along, and scores, which choose the candidates; stored items have both.

        An index that compares more than codes knows no scores. Its own distances choose the candidates.
        """
        n_columns = state.require_vectors().layout.n_columns
        by_scores = "scores" in state.index.supports
        found = cls._encoded(state, X, items, with_scores=X is not None and by_scores)
        if X is not None:
            return replace(found, rescoring=Rescoring.of(options, state, kept_rows(state.hasher, X, n_columns)))
        vectors = state.vectors_of(store, np.asarray(items).tolist())
        scores = None
        if by_scores:
            scores = called_with_vectors(state.hasher.without_steps().decision_function, vectors)
        return cls(found.encoded, scores, Rescoring.of(options, state, vectors))

    def part(self, rows: slice) -> Queries:
        """Return some of the queries."""
        scores = None if self.scores is None else self.scores[rows]
        rescoring = None if self.rescoring is None else replace(self.rescoring, vectors=self.rescoring.vectors[rows])
        return Queries(self.encoded[rows], scores, rescoring)

    def spans(self, options: SearchOptions, n_items: int) -> list[slice]:
        """Return which queries to search for together, so that what they find fits in memory."""
        if self.rescoring is not None:
            return self.rescoring.spans(options.n_nearest)
        # Each of them may find the whole collection.
        n_found = n_items if options.finds_all else options.n_nearest
        n_queries = _BYTES_AT_ONCE // (16 * max(1, n_found))
        return tiles(len(self.encoded), max(1, min(_QUERIES_AT_ONCE, n_queries)))


class Found(NamedTuple):
    """What one query finds, in order, as far as it is known.

    These are distances of the index, ids, probabilities, distances between vectors, and inner products of codes with
    the scores of the query.
    """

    distances: np.ndarray
    ids: np.ndarray
    probabilities: np.ndarray | None = None
    exact: np.ndarray | None = None
    products: np.ndarray | None = None

    def taken(self, positions: np.ndarray | slice) -> Found:
        """Return some of the items."""
        return Found(*(None if column is None else column[positions] for column in self))  # type: ignore[arg-type]


def find_items(
    state: State,
    store: Store,
    queries: Queries,
    options: SearchOptions,
    pause: Callable[[], None],
    guesses: Guesses | None = None,
) -> list[SearchResult]:
    """Return what each query finds, rejected or not; ``pause`` is called before each piece of the work."""
    passing = passing_items(state, store, options.filters, guesses)
    found: list[SearchResult] = []

    def read(ids: list[int]) -> list[Item]:
        items = [item_of(row, state.vocabulary) for row in store.rows(ids)]
        return with_guesses(items, guesses)

    for span in queries.spans(options, len(state.index)):
        pause()
        part = queries.part(span)
        neighbors: Iterable[Found] = near_items(state, part, options, passing)
        if part.rescoring is not None:
            neighbors = _rescored(state, store, part.rescoring, neighbors, options.n_nearest)
        found += found_of(neighbors, options, read)
    return found


def near_items(state: State, queries: Queries, options: SearchOptions, among: np.ndarray | None) -> list[Found]:
    """Return what the index finds for each query: the nearest items, or all that are near or likely enough.

    If vectors are to decide the order, there are more of them, and the scores of the query do not order them yet.
    """
    index, encoded, rescoring, scores = state.index, queries.encoded, queries.rescoring, queries.scores
    least: dict[str, Any] = {} if options.min_probability is None else {"min_probability": options.min_probability}
    if options.finds_all:
        radius: Any = np.inf if options.radius is None else options.radius
        near = index.search_radius(encoded, radius, among=among, **least)
        found = [Found(*near.of(query)) for query in range(len(encoded))]
    else:
        n = options.n_nearest
        if rescoring is not None:
            n = rescoring.n_listed(n, by_scores=scores is not None)
        ordering = scores if rescoring is None else None
        nearest = index.search(encoded, n, among=among, scores=ordering, **least)
        found = [Found(*each) for each in zip(nearest.distances, nearest.ids, strict=True)]
    if "probability" in state.space.supports:
        # Of all queries at once, because an index looks through its items for the ids.
        width = max((len(each.ids) for each in found), default=0)
        ids = np.full((len(found), width), -1)
        for own, each in zip(ids, found, strict=True):
            own[: len(each.ids)] = each.ids
        shares = index.probabilities(encoded, ids)
        found = [each._replace(probabilities=own[: len(each.ids)]) for each, own in zip(found, shares, strict=True)]
    # An id of -1 is a place for which no item is likely enough.
    found = [each.taken(each.ids >= 0) for each in found]
    if rescoring is not None and scores is not None:
        found = [
            each._replace(products=_products_of(state, each.ids, own)) for each, own in zip(found, scores, strict=True)
        ]
    return found


def found_of(
    neighbors: Iterable[Found], options: SearchOptions, read: Callable[[list[int]], Iterable[Item]]
) -> list[SearchResult]:
    """Return the first k neighbors of each query as hits, and how many there are.

    ``read`` returns the items of ids; those that it does not return are left out.
    """
    shown = [(len(found.ids), found.taken(slice(options.k))) for found in neighbors]
    items = {item.id: item for item in read(sorted({item for _, found in shown for item in found.ids.tolist()}))}

    def hits(found: Found) -> list[Hit]:
        columns: list[list[Any]] = [
            [None] * len(found.ids) if column is None else column.tolist() for column in found[:4]
        ]
        return [
            _hit(items[item], distance, probability, exact)
            for distance, item, probability, exact in zip(*columns, strict=True)
            if item in items
        ]

    return [SearchResult(hits(found), total) for total, found in shown]


def _hit(item: Item, distance: float, probability: float | None, rescored: float | None) -> Hit:
    about = item.label, item.metadata, item.reference, item.code_from
    return Hit(item.id, distance, probability, rescored, *about, guess=item.guess)


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
    if options.finds_all or options.rescore is not None:
        return bool(options.rescore)
    if state.vectors is not None:
        return True
    for name in ("oversample", "metric"):
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


@dataclass(frozen=True, slots=True)
class Rescoring:
    """How to rescore: the vectors of the queries, candidates per result, and how distances and probabilities count.

    Where hits have probabilities, these decide, and distances of vectors among equally likely items, unless a ``rule``
    puts both into one score, as that of a :class:`starshl.HybridHasher` does.
    """

    vectors: np.ndarray
    oversample: int
    metric: str
    rule: ScoreRule | None

    @classmethod
    def of(cls, options: SearchOptions, state: State, vectors: np.ndarray) -> Self:
        """Return how to rescore queries with these vectors."""
        usual = _OVERSAMPLE_SHORT if state.space.n_bits <= _SHORT else _OVERSAMPLE
        oversample = usual if options.oversample is None else options.oversample
        metric = options.metric or "euclidean"
        return cls(vectors, oversample, metric, state.space.rules[metric])

    def n_listed(self, k: int, *, by_scores: bool) -> int:
        """Return how many items of the index candidates are chosen from."""
        return k * self.oversample * (_SHORTLIST if by_scores else 1)

    def spans(self, k: int) -> list[slice]:
        """Return which queries to rescore together."""
        n_columns = max(self.vectors.shape[1], _SHORTLIST)
        n_queries = _BYTES_AT_ONCE // (8 * k * self.oversample * n_columns)
        return list(tiles(len(self.vectors), max(1, min(64, n_queries))))

    def candidates(self, listed: Found, k: int) -> Found:
        """Choose what to compare by vectors, by the products of codes with the scores of the query if they count."""
        if listed.products is None:
            return listed.taken(slice(k * self.oversample))
        return listed.taken(np.lexsort((listed.ids, -listed.products))[: k * self.oversample])

    def best(self, candidates: Found, exact: np.ndarray, k: int) -> Found:
        """Return the k best candidates of a query, given the distances of their vectors."""
        keys: tuple[np.ndarray, ...] = (candidates.ids, exact)
        if candidates.probabilities is not None and self.rule is not None:
            keys = (candidates.ids, self.rule.scores(exact, candidates.probabilities))
        elif candidates.probabilities is not None:
            keys = (candidates.ids, exact, -np.maximum(candidates.probabilities, LEAST_PROBABILITY))
        return candidates._replace(exact=exact).taken(np.lexsort(keys)[:k])


def _rescored(state: State, store: Store, rescoring: Rescoring, near: Iterable[Found], k: int) -> Iterator[Found]:
    """Yield the k best of ``k * oversample`` candidates of each query."""
    for row, listed in enumerate(near):
        candidates = rescoring.candidates(listed, k)
        vectors = state.vectors_of(store, candidates.ids.tolist())
        yield rescoring.best(candidates, exact_distances(rescoring.vectors[row], vectors, rescoring.metric), k)


def _products_of(state: State, ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the inner products of the codes of items with scores."""
    packed = state.index.reconstruct(ids).packed
    padded = np.zeros(8 * packed.shape[1])
    padded[: len(scores)] = scores
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
