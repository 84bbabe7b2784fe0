"""Why an item matches a query: bits, classes, vectors, and what mattered most in the hash functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Label
from .._common.validation import SamplesLike, check_choice
from .._common.words import counted, percent
from ..codes.binary import BinaryCodes
from ..codes.word_dictionary import Words
from ..index.posterior import WordIndex
from .answers import ClassOfCode, Explanation, Hit, SearchResult
from .items import Row, label_of
from .model_classes import ShownClasses
from .options import METRICS
from .search import exact_distances
from .state import State
from .store import Store
from .vectors import kept_rows

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher
    from ..hashers.star.contributions import Contributions

_TOP = 3  # more would bury the reason


def with_explanations(
    state: State,
    store: Store,
    X: SamplesLike | None,
    items: ArrayLike | None,
    found: list[SearchResult],
    metric: str,
    pause: Callable[[], None],
) -> list[SearchResult]:
    """Add explanations to what queries found; stored items are explained by their kept vectors."""
    if X is None:
        if state.vectors is None:
            raise ValueError(
                "This collection keeps no vectors, so matches with a stored item cannot be explained. Search by "
                "vector, or leave the explanation out."
            )
        X = state.vectors_of(store, np.asarray(items).tolist())
    rows: Any = X
    explained = []
    for row, each in enumerate(found):
        pause()
        explained.append(replace(each, hits=_explained_hits(state, store, rows[row : row + 1], each.hits, metric)))
    return explained


def _explained_hits(state: State, store: Store, X: SamplesLike, hits: list[Hit], metric: str) -> list[Hit]:
    if not hits:
        return hits
    reasons = explain_hits(state, store, X, [hit.id for hit in hits], metric)
    return [replace(hit, explanation=why) for hit, why in zip(hits, reasons, strict=True)]


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


def explain_hits(state: State, store: Store, X: SamplesLike, ids: list[int], metric: str) -> list[Explanation]:
    """Explain the matches of one query with items."""
    check_choice(metric, "metric", METRICS)
    n_queries = np.shape(cast(Any, X))[0]
    if n_queries != 1:
        raise ValueError(f"X has {n_queries} rows; an explanation is about one query. Pass one row, such as X[:1].")
    file = state.vectors
    vector = None if file is None else kept_rows(state.hasher, X, file.layout.n_columns)[0]
    query = ExplainedQuery.of(state.hasher.for_rows(X), state.shown_classes, X, vector, metric)
    stored = [None] * len(ids) if file is None else list(state.vectors_of(store, ids))
    rows = store.rows(ids)
    words = state.hasher.words
    has_parts = words is not None and ("probability" in state.hasher.supports or n_class_bits(state.hasher) > 0)
    likeness = _likeness(state, words, X, ids) if words is not None and has_parts else [None] * len(ids)
    return [
        query.explain(row, label_of(row, state.vocabulary), own, like)
        for row, own, like in zip(rows, stored, likeness, strict=True)
    ]


class _Likeness(NamedTuple):
    """What the query and one item look like, and the parts of the distance of an index that knows probabilities.

    ``place`` is that of the item's class among those of the hasher.
    """

    query_class: ClassOfCode | None = None
    item_class: ClassOfCode | None = None
    place: int | None = None
    probability: float | None = None
    neighbor_distance: float | None = None


def _likeness(state: State, words: Words, X: SamplesLike, ids: list[int]) -> list[_Likeness]:
    hasher, index, classes = state.hasher, state.index, state.shown_classes
    assert isinstance(index, WordIndex), "Words are searched by their index."
    query = state.encoded(X)
    pooled, items = state.shown_classes.pooled(query), np.array(ids, np.int64)
    probabilities = index.probabilities(pooled, items[None])[0]
    neighbors: list[float | None] = [None] * len(ids)
    if words.n_bits < hasher.n_bits_:
        nearest = index.search(pooled, max(len(ids), 1), among=np.unique(items))
        distance_of = dict(zip(nearest.ids[0].tolist(), nearest.distances[0].tolist(), strict=True))
        costs = index.rule.class_costs(probabilities).tolist()
        neighbors = [distance_of[item] - cost for item, cost in zip(ids, costs, strict=True)]
    if "probability" not in hasher.supports:  # clusters, which have no names
        return [_Likeness(neighbor_distance=neighbor) for neighbor in neighbors]
    asked = words.posteriors_of(query.codes) if query.posteriors is None else query.posteriors
    found = words.posteriors_of(index.reconstruct(items))
    return [
        _Likeness(_likeliest(classes, asked[0]), _likeliest(classes, own), int(own.argmax()), probability, neighbor)
        for own, probability, neighbor in zip(found, probabilities.tolist(), neighbors, strict=True)
    ]


def _likeliest(classes: ShownClasses, posterior: np.ndarray) -> ClassOfCode | None:
    """Return the likeliest class, None if all were removed."""
    if not classes.labels:
        return None
    shares = classes.shares(posterior[None])[0]
    place = int(shares.argmax())
    return ClassOfCode(classes.labels[place], probability=float(shares[place]))


@dataclass(frozen=True, slots=True)
class ExplainedQuery:
    """One query, encoded once, and what explanations of its hits need of it.

    ``first_bit`` is the first one that is compared bit by bit: those before it hold a class.
    """

    signs: np.ndarray
    scores: np.ndarray
    first_bit: int
    vector: np.ndarray | None
    words: _Codewords | None
    parts: Contributions | None
    metric: str
    novelty: float | None

    @classmethod
    def of(
        cls, hasher: BaseHasher, classes: ShownClasses, X: SamplesLike, vector: np.ndarray | None, metric: str
    ) -> ExplainedQuery:
        """Encode the one row of X."""
        words = None if "probability" in hasher.supports else hasher.class_words
        return cls(
            hasher.encode(X).to_signs()[0],
            hasher.decision_function(X)[0],
            n_class_bits(hasher),
            vector,
            None if words is None else _Codewords(_names(hasher, classes), words),
            hasher.contributions(X) if "contributions" in hasher.supports else None,
            metric,
            float(hasher.novelty(X)[0]) if "novelty" in hasher.supports else None,
        )

    def explain(
        self, row: Row, label: Label | None, stored: np.ndarray | None, likeness: _Likeness | None
    ) -> Explanation:
        """Explain the match with an item, given its row, its label, and its vector if that is kept."""
        packed = np.frombuffer(row.code, np.uint8)[None]
        signs = BinaryCodes(packed, len(self.signs)).to_signs()[0]
        agrees = signs == self.signs
        agreeing, differing = (self.first_bit + np.flatnonzero(each[self.first_bit :]) for each in (agrees, ~agrees))
        by_certainty = differing[np.argsort(-np.abs(self.scores[differing]), kind="stable")]
        like = likeness or self._nearest_codewords(signs)
        kernels, views, training_rows = self._weights(signs, like.place)
        why = Explanation(
            text="",
            id=row.id,
            probability=like.probability,
            distance=len(differing),
            neighbor_distance=like.neighbor_distance,
            agreeing=agreeing.tolist(),
            differing=by_certainty.tolist(),
            query_class=like.query_class,
            item_class=like.item_class,
            label=label,
            code_from=row.code_from,
            rescored=self._exact(stored),
            metric=self.metric,
            kernels=kernels,
            views=views,
            training_rows=training_rows,
            novelty=self.novelty,
        )
        return replace(why, text=_in_words(why))

    def _exact(self, stored: np.ndarray | None) -> float | None:
        if stored is None or self.vector is None:
            return None
        return float(exact_distances(self.vector, stored[None], self.metric)[0])

    def _nearest_codewords(self, signs: np.ndarray) -> _Likeness:
        words = self.words
        if words is None:
            return _Likeness()
        return _Likeness(words.nearest(self.signs), words.nearest(signs), words.nearest_index(signs))

    def _weights(
        self, signs: np.ndarray, place: int | None
    ) -> tuple[list[tuple[str, float]], list[tuple[str, float]], list[tuple[int, float]]]:
        """Return the largest parts of the score of the item's class, or of the mean agreement with the item's code."""
        if self.parts is None:
            return [], [], []
        if self.parts.of_classes and place is not None:
            direction = np.zeros(len(self.parts.by_row))
            direction[place] = 1.0
        else:
            direction = signs / len(signs)
        parts = self.parts
        return parts.top_kernels(direction, _TOP), parts.top_views(direction, _TOP), parts.top_rows(direction, _TOP)


def n_class_bits(hasher: BaseHasher) -> int:
    """Return how many bits at the beginning of a code hold a class, 0 if bits for the neighborhood do not follow."""
    words = hasher.words
    return 0 if words is None or words.n_bits == hasher.n_bits_ else words.n_bits


def _names(hasher: BaseHasher, classes: ShownClasses) -> list[Label | None]:
    """Return how each class of a hasher is shown; clusters are shown by number."""
    if hasher.holds_clusters:
        return list(hasher.class_labels)
    return [classes.label(place) for place in range(len(classes.columns))]


@dataclass(frozen=True, slots=True)
class _Codewords:
    """Words of classes, None for a removed one."""

    classes: list[Label | None]
    words: np.ndarray

    def nearest_index(self, signs: np.ndarray) -> int:
        differing = (self.words != signs).sum(axis=1)
        is_removed = np.array([label is None for label in self.classes])
        return int(np.where(is_removed, self.words.shape[1] + 1, differing).argmin())

    def nearest(self, signs: np.ndarray) -> ClassOfCode | None:
        index = self.nearest_index(signs)
        label, differing = self.classes[index], self.words[index] != signs
        return None if label is None else ClassOfCode(label, int(differing.sum()))


def _in_words(why: Explanation) -> str:
    n_bits = len(why.agreeing) + len(why.differing)
    word = "bit" if len(why.differing) == 1 else "bits"
    where = f" ({word} {', '.join(map(str, why.differing))})" if why.differing else ""
    kind = "bits" if why.neighbor_distance is None else "bits for the neighborhood"
    parts = [
        f"Item {why.id} differs from the query in {why.distance} of {n_bits} {kind}{where}.",
        f"Its code follows from its {why.code_from}"
        + (f", {json.dumps(why.label)}." if why.code_from == "label" else ".")
        + (f" Its label is {json.dumps(why.label)}." if why.code_from == "vector" and why.label is not None else ""),
    ]
    if why.probability is not None:
        parts.append(f"It is of the query's class with a probability of {percent(why.probability, 1)}.")
    if why.neighbor_distance is not None:
        parts.append(f"The neighborhood adds {why.neighbor_distance:.4g} to its distance.")
    if why.query_class is not None and why.item_class is not None and why.query_class.probability is not None:
        asked, found = (percent(each.probability or 0, 1) for each in (why.query_class, why.item_class))
        parts.append(
            f"The query looks most like {json.dumps(why.query_class.label)} ({asked}), the item like "
            f"{json.dumps(why.item_class.label)} ({found})."
        )
    elif why.query_class is not None and why.item_class is not None:
        parts.append(
            f"The nearest codeword of the query is that of {json.dumps(why.query_class.label)}, "
            f"{counted(why.query_class.distance or 0, 'bit')} away; that of the item is "
            f"{json.dumps(why.item_class.label)}, {counted(why.item_class.distance or 0, 'bit')} away."
        )
    if why.rescored is not None:
        parts.append(f"Their vectors are {why.rescored:.4g} apart ({why.metric}).")
    if why.views:
        parts.append(f"Views that matter most: {_listed(why.views)}.")
    if why.kernels:
        parts.append(f"Kernels that matter most: {_listed(why.kernels)}.")
        parts.append(f"Training rows that matter most: {_listed(why.training_rows)}.")
    if why.novelty is not None:
        parts.append(f"Of the training rows, {why.novelty:.0%} look more familiar than the query.")
    return " ".join(parts)


def _listed(parts: list[tuple[Any, float]]) -> str:
    return ", ".join(f"{name} ({part:+.3g})" for name, part in parts)
