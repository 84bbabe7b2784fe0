"""How well a collection is searched: labeled items as queries, each left out of its own answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..collection import Collection
from .jobs import RunningJob
from .side_by_side import SideBySide

__all__ = ["MethodQuality", "Quality", "measure_quality"]

_QUERIES = 300
_K = 10


@dataclass(frozen=True, slots=True)
class MethodQuality:
    """A method: the share of its ten hits with the label of the query, and of the ten nearest vectors that it finds."""

    method: str
    precision: float
    recall: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of all methods, from how many queries among how many labeled items they are, and by chance."""

    n_queries: int
    n_items: int
    by_chance: float
    methods: list[MethodQuality]


def measure_quality(job: RunningJob, collection: Collection, others: SideBySide) -> Quality:
    """Search for labeled items among the labeled ones, by vector; the hasher may have learned from them."""
    ids, labels = _labeled(collection)
    if len(ids) < 2 or len(set(labels)) < 2:
        raise ValueError("Quality needs labeled items of two classes or more. Label some first.")
    if collection.keeps is None:
        raise ValueError("Quality needs the vectors of items, and this collection keeps none.")
    if not others.is_possible:
        raise ValueError("Quality needs all vectors in memory, and those of this collection take more than 2 GB.")
    others.prepare(job)
    label_of = dict(zip(ids, labels, strict=True))
    chosen = np.sort(np.random.default_rng(0).permutation(len(ids))[:_QUERIES])
    found: dict[str, list[list[int]]] = {}
    k = min(_K, len(ids) - 1)
    among = np.array(ids)
    for done, place in enumerate(chosen.tolist()):
        job.report("searching", done, len(chosen))
        own, vector = ids[place], collection.vectors([ids[place]])
        lists = {
            "Codes": [hit.id for hit in collection.search(vector, k + 1, among=among, rescore=False)[0]],
            "Codes, then vectors": [hit.id for hit in collection.search(vector, k + 1, among=among)[0]],
        }
        lists |= {ranking.method: ranking.ids for ranking in others.search(vector[0], k + 1, among)}
        for method, hits in lists.items():
            found.setdefault(method, []).append([hit for hit in hits if hit != own][:k])
    queries = [ids[place] for place in chosen.tolist()]
    shares = np.unique(np.array(labels, dtype=object).astype(str), return_counts=True)[1] / len(labels)
    methods = [_measured(method, lists, found["Vectors"], queries, label_of) for method, lists in found.items()]
    return Quality(len(queries), len(ids), float((shares**2).sum()), methods)


def _labeled(collection: Collection) -> tuple[list[int], list[object]]:
    known = list(collection.label_counts())
    ids = collection.matching(labels=known).tolist() if known else []
    return ids, [item.label for item in collection.get(ids)] if ids else []


def _measured(
    method: str, lists: list[list[int]], nearest: list[list[int]], queries: list[int], label_of: dict[int, object]
) -> MethodQuality:
    right = [label_of[hit] == label_of[query] for query, hits in zip(queries, lists, strict=True) for hit in hits]
    shared = [len({*hits} & {*exact}) / len(exact) for hits, exact in zip(lists, nearest, strict=True)]
    return MethodQuality(method, float(np.mean(right)), None if method == "Vectors" else float(np.mean(shared)))
