"""Answers that have a different form in HTTP, and how to make them from what the library returns.

All others are the values in :mod:`starshl.answers`, as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ... import answers
from ...answers import CollectionInfo, Explanation, Job, Snapshot
from ...codes import BinaryCodes
from ...collection import Explanation as Reasons
from ...collection import Hit, Item
from ..requests import Found

__all__ = [
    "Collections",
    "Count",
    "Encoded",
    "Health",
    "JobList",
    "Restored",
    "SearchAnswer",
    "SearchAnswers",
    "SnapshotList",
    "encoded_answer",
    "explanation_answer",
    "item_answer",
    "search_answer",
]


@dataclass(frozen=True, slots=True)
class Health:
    status: str


@dataclass(frozen=True, slots=True)
class Collections:
    version: str
    collections: list[CollectionInfo]


@dataclass(frozen=True, slots=True)
class Count:
    """How many items pass the filters; ``notes`` say how to ask more efficiently."""

    count: int
    notes: list[str]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """One result per query; ``notes`` say how to ask more efficiently."""

    results: list[answers.Found]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchAnswers:
    """One answer per search."""

    answers: list[SearchAnswer]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Codes in hexadecimal: bit j is bit j % 8, counted from the least significant, of byte j // 8.

    ``notes`` name texts without a known word.
    """

    n_bits: int
    codes: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SnapshotList:
    snapshots: list[Snapshot]


@dataclass(frozen=True, slots=True)
class Restored:
    n_items: int


@dataclass(frozen=True, slots=True)
class JobList:
    jobs: list[Job]


def encoded_answer(codes: BinaryCodes, notes: Sequence[str] = ()) -> Encoded:
    return Encoded(n_bits=codes.n_bits, codes=[row.tobytes().hex() for row in codes.packed], notes=list(notes))


def item_answer(item: Item, vector: list[float] | None = None) -> answers.Item:
    return answers.Item(**item._asdict(), vector=vector)


def search_answer(found: Sequence[Found], notes: list[str]) -> SearchAnswer:
    return SearchAnswer([_found_answer(each) for each in found], notes)


def explanation_answer(reasons: Reasons) -> Explanation:
    query, item = reasons.query_class, reasons.item_class
    return Explanation(
        text=str(reasons),
        agreeing=reasons.agreeing,
        differing=reasons.differing,
        query_class=None if query is None else query.label,
        item_class=None if item is None else item.label,
        kernels=reasons.kernels,
        views=reasons.views,
        training_rows=reasons.training_rows,
    )


def _found_answer(found: Found) -> answers.Found:
    reasons = found.explanations or [None] * len(found.hits)
    hits = [_hit_answer(*pair) for pair in zip(found.hits, reasons, strict=True)]
    return answers.Found(hits, found.total, found.novelty)


def _hit_answer(hit: Hit, reasons: Reasons | None) -> answers.Hit:
    return answers.Hit(**hit._asdict(), explanation=None if reasons is None else explanation_answer(reasons))
