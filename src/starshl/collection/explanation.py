"""Why an item matches a query: bits, classes, vectors, and what mattered most in the hash functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Label
from .._common.validation import SamplesLike, check_choice
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..hashers.base import BaseHasher
from ..hashers.star.contributions import Contributions
from .answers import ClassOfCode, Explanation, Hit, SearchResult
from .items import Row, label_of
from .model_classes import ShownClasses
from .options import METRICS
from .search import exact_distances
from .state import State
from .store import Store
from .vectors import kept_rows

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
    return [query.explain(row, label_of(row, state.vocabulary), own) for row, own in zip(rows, stored, strict=True)]


@dataclass(frozen=True, slots=True)
class ExplainedQuery:
    """One query, encoded once, and what explanations of its hits need of it."""

    signs: np.ndarray
    scores: np.ndarray
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
        words = hasher.class_words
        return cls(
            hasher.encode(X).to_signs()[0],
            hasher.decision_function(X)[0],
            vector,
            None if words is None else _Codewords(_names(hasher, classes), words),
            hasher.contributions(X) if "contributions" in hasher.supports else None,
            metric,
            float(hasher.novelty(X)[0]) if "novelty" in hasher.supports else None,
        )

    def explain(self, row: Row, label: Label | None, stored: np.ndarray | None) -> Explanation:
        """Explain the match with an item, given its row, its label, and its vector if that is kept."""
        packed = np.frombuffer(row.code, np.uint8)[None]
        signs = BinaryCodes(packed, len(self.signs)).to_signs()[0]
        differing = np.flatnonzero(signs != self.signs)
        by_certainty = differing[np.argsort(-np.abs(self.scores[differing]), kind="stable")]
        kernels, views, training_rows = self._weights(signs)
        why = Explanation(
            text="",
            id=row.id,
            distance=len(differing),
            agreeing=np.flatnonzero(signs == self.signs).tolist(),
            differing=by_certainty.tolist(),
            query_class=None if self.words is None else self.words.nearest(self.signs),
            item_class=None if self.words is None else self.words.nearest(signs),
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

    def _weights(
        self, signs: np.ndarray
    ) -> tuple[list[tuple[str, float]], list[tuple[str, float]], list[tuple[int, float]]]:
        """Return the largest parts of the score of the item's class, or of the mean agreement with the item's code."""
        if self.parts is None:
            return [], [], []
        if self.parts.of_classes and self.words is not None:
            direction = np.zeros(len(self.parts.by_row))
            direction[self.words.nearest_index(signs)] = 1.0
        else:
            direction = signs / len(signs)
        parts = self.parts
        return parts.top_kernels(direction, _TOP), parts.top_views(direction, _TOP), parts.top_rows(direction, _TOP)


def _names(hasher: BaseHasher, classes: ShownClasses) -> list[Label | None]:
    """Return how each class of a hasher is shown; clusters are shown by number."""
    if hasher.holds_clusters:
        return list(hasher.class_labels)
    return [classes.label(place) for place in range(len(classes.columns))]


@dataclass(frozen=True, slots=True)
class _Codewords:
    """Words of classes, None for a removed one; shorter than a code if only its first bits hold the class."""

    classes: list[Label | None]
    words: np.ndarray

    def nearest_index(self, signs: np.ndarray) -> int:
        differing = (self.words != signs[: self.words.shape[1]]).sum(axis=1)
        is_removed = np.array([label is None for label in self.classes])
        return int(np.where(is_removed, self.words.shape[1] + 1, differing).argmin())

    def nearest(self, signs: np.ndarray) -> ClassOfCode | None:
        index = self.nearest_index(signs)
        label, differing = self.classes[index], self.words[index] != signs[: self.words.shape[1]]
        return None if label is None else ClassOfCode(label, int(differing.sum()))


def _in_words(why: Explanation) -> str:
    n_bits = len(why.agreeing) + len(why.differing)
    word = "bit" if len(why.differing) == 1 else "bits"
    where = f" ({word} {', '.join(map(str, why.differing))})" if why.differing else ""
    parts = [
        f"Item {why.id} differs from the query in {why.distance} of {n_bits} bits{where}.",
        f"Its code follows from its {why.code_from}"
        + (f", {json.dumps(why.label)}." if why.code_from == "label" else ".")
        + (f" Its label is {json.dumps(why.label)}." if why.code_from == "vector" and why.label is not None else ""),
    ]
    if why.query_class is not None and why.item_class is not None:
        parts.append(
            f"The nearest codeword of the query is that of {json.dumps(why.query_class.label)}, "
            f"{counted(why.query_class.distance, 'bit')} away; that of the item is "
            f"{json.dumps(why.item_class.label)}, {counted(why.item_class.distance, 'bit')} away."
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
