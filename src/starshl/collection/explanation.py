"""Why an item matches a query: bits, classes, vectors, and what mattered most in the hash functions."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._common.validation import SamplesLike, check_choice
from .._common.words import counted
from ..codes.binary import BinaryCodes, n_bytes
from ..hashers.base import BaseHasher
from ..hashers.prepared import inner_hasher, vector_hasher
from ..hashers.star.kernel_hasher import KernelHasher
from ..learning.kernels.expansion import kernel_values
from ..learning.kernels.kernel import Kernel
from ..learning.kernels.views import OnColumns
from .answers import ClassOfCode, Explanation, Found, Hit
from .items import Row, label_of
from .options import METRICS
from .search import exact_distances
from .state import State
from .store import Store
from .vectors import kept_rows

_TOP = 3  # more would bury the reason


@dataclass(frozen=True, slots=True)
class Contributions:
    r"""The parts of the functions :math:`f_b(x) = \sum_m \theta_{bm} \sum_s \eta_{bs} k_m(x_s, x) + \beta_b` at one x.

    Attributes
    ----------
    by_kernel : array of shape (n_functions, n_kernels), :math:`\theta_{bm} \sum_s \eta_{bs} k_m(x_s, x)`
    by_row : array of shape (n_functions, n_support), :math:`\eta_{bs} \sum_m \theta_{bm} k_m(x_s, x)`
    kernels : the name of each kernel
    views : the view that each kernel reads, empty text if it reads all columns
    rows : where the support rows stand among the training rows
    """

    by_kernel: np.ndarray
    by_row: np.ndarray
    kernels: tuple[str, ...]
    views: tuple[str, ...]
    rows: np.ndarray

    def top_kernels(self, direction: np.ndarray, n: int) -> list[tuple[str, float]]:
        """Return the kernels with the largest parts of ``direction @ f``, largest first."""
        parts = direction @ self.by_kernel
        return [(self.kernels[m], float(parts[m])) for m in np.argsort(-parts, kind="stable")[:n]]

    def top_views(self, direction: np.ndarray, n: int) -> list[tuple[str, float]]:
        """Return the views with the largest parts of ``direction @ f``, largest first; none without views."""
        parts: dict[str, float] = {}
        for view, part in zip(self.views, (direction @ self.by_kernel).tolist(), strict=True):
            if view:
                parts[view] = parts.get(view, 0.0) + part
        return sorted(parts.items(), key=lambda item: -item[1])[:n]

    def top_rows(self, direction: np.ndarray, n: int) -> list[tuple[int, float]]:
        """Return the training rows with the largest parts of ``direction @ f``, largest first."""
        parts = direction @ self.by_row
        return [(int(self.rows[s]), float(parts[s])) for s in np.argsort(-parts, kind="stable")[:n]]


def contributions(hasher: KernelHasher, X: SamplesLike) -> Contributions | None:
    """Return the parts of the functions of a fitted hasher at the one sample in X, None if its kernels were computed
    elsewhere.
    """
    expansion = hasher._expansion
    if not expansion.kernels:
        return None
    sample = hasher._read(X).values
    values = kernel_values(expansion.kernels, sample, expansion.kept)[:, 0].astype(np.float64)
    eta = np.asarray(expansion.coefficients, np.float64)
    theta = np.broadcast_to(np.atleast_2d(expansion.weights), (len(eta), len(values)))
    names = tuple(map(_name, expansion.kernels))
    views = tuple(kernel.view if isinstance(kernel, OnColumns) else "" for kernel in expansion.kernels)
    return Contributions(theta * (eta @ values.T), eta * (theta @ values), names, views, expansion.support)


def _name(kernel: Kernel) -> str:
    """Return a kernel as one would write it, without arrays; one of a view after the name of the view."""
    if isinstance(kernel, OnColumns):
        return f"{kernel.view}: {_name(kernel.kernel)}" if kernel.view else _name(kernel.kernel)
    if not is_dataclass(kernel):
        return type(kernel).__name__
    values = {field.name: getattr(kernel, field.name) for field in fields(kernel)}
    numbers = [f"{name}={value:.3g}" for name, value in values.items() if isinstance(value, int | float)]
    return f"{type(kernel).__name__}({', '.join(numbers)})"


def explained(
    state: State, store: Store, X: SamplesLike | None, items: ArrayLike | None, found: list[Found], metric: str
) -> list[Found]:
    """Add explanations to what queries found; stored items are explained by their kept vectors."""
    if X is None:
        if state.vectors is None:
            raise ValueError(
                "This collection keeps no vectors, so matches with a stored item cannot be explained. Search by "
                "vector, or leave the explanation out."
            )
        X = state.vectors_of(store, np.asarray(items).tolist())
    rows: Any = X
    return [
        replace(each, hits=_explained_hits(state, store, rows[place : place + 1], each.hits, metric))
        for place, each in enumerate(found)
    ]


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
    query = ExplainedQuery.of(vector_hasher(state.hasher, X), X, vector, metric)
    stored = [None] * len(ids) if file is None else list(state.vectors_of(store, ids))
    return [query.explain(row, own) for row, own in zip(store.rows(ids), stored, strict=True)]


@dataclass(frozen=True, slots=True)
class ExplainedQuery:
    """One query, encoded once, and what explanations of its hits need of it."""

    signs: np.ndarray
    scores: np.ndarray
    vector: np.ndarray | None
    words: _Codewords | None
    parts: Contributions | None
    scores_classes: bool
    metric: str
    novelty: float | None

    @classmethod
    def of(cls, hasher: BaseHasher, X: SamplesLike, vector: np.ndarray | None, metric: str) -> ExplainedQuery:
        """Encode the one row of X."""
        inner: Any = inner_hasher(hasher)
        rows = X if inner is hasher else cast(Any, hasher).prepare(X)
        learner = inner
        if hasattr(inner, "class_hasher_"):  # of both hashers, only one that scores classes has kernels to name
            learner = inner.class_hasher_ if hasattr(inner.class_hasher_, "class_scores") else None
        words = _Codewords.of(inner)
        knows_parts = isinstance(learner, KernelHasher) and (learner is inner or words is not None)
        parts = contributions(learner, rows) if knows_parts else None
        return cls(
            hasher.encode(X).to_signs()[0],
            hasher.decision_function(X)[0],
            vector,
            words,
            parts,
            hasattr(learner, "class_scores"),
            metric,
            _novelty(hasher, X),
        )

    def explain(self, row: Row, stored: np.ndarray | None) -> Explanation:
        """Explain the match with an item, given its row and its vector if that is kept."""
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
            label=label_of(row),
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
        if self.scores_classes and self.words is not None:
            direction = np.zeros(len(self.parts.by_row))
            direction[self.words.nearest_place(signs)] = 1.0
        else:
            direction = signs / len(signs)
        parts = self.parts
        return parts.top_kernels(direction, _TOP), parts.top_views(direction, _TOP), parts.top_rows(direction, _TOP)


@dataclass(frozen=True, slots=True)
class _Codewords:
    """Words of classes; shorter than a code if only its first bits hold the class."""

    classes: list[Any]
    words: np.ndarray

    @classmethod
    def of(cls, hasher: Any) -> _Codewords | None:
        classes, words = getattr(hasher, "classes_", None), getattr(hasher, "codewords_", None)
        if classes is not None and hasattr(hasher, "class_bits_") and hasattr(hasher, "relabel"):
            blank = hasher.as_codes(np.zeros((len(classes), n_bytes(hasher.n_bits_)), np.uint8))
            words = hasher.relabel(blank, classes).to_signs()[:, : hasher.class_bits_]
        if classes is None or words is None:
            return None
        return cls(np.asarray(classes).tolist(), np.asarray(words)[: len(classes)])

    def nearest_place(self, signs: np.ndarray) -> int:
        return int((self.words != signs[: self.words.shape[1]]).sum(axis=1).argmin())

    def nearest(self, signs: np.ndarray) -> ClassOfCode:
        place = self.nearest_place(signs)
        return ClassOfCode(self.classes[place], int((self.words[place] != signs[: self.words.shape[1]]).sum()))


def _novelty(hasher: Any, X: SamplesLike) -> float | None:
    """Return the novelty of the one row of X, None for a hasher that cannot tell or has lost its training rows."""
    inner = inner_hasher(hasher)
    learner = getattr(inner, "class_hasher_", inner)
    return float(hasher.novelty(X)[0]) if hasattr(learner, "novelty_calibration_") else None


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
