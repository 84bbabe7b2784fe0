"""Some of the held-out queries, and what each method finds for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .split import Split

__all__ = ["Answer", "Question", "ask"]

_N_QUESTIONS = 8  # real queries on the page; more would be too long to read


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a method finds first, as numbers of rows of X; None where it is not known if one is right."""

    method: str
    rows: list[int]
    right: list[bool | None]


@dataclass(frozen=True, slots=True)
class Question:
    """A held-out row, its label, None if it has none, and the answers to it."""

    row: int
    label: Any
    answers: list[Answer]


def ask(split: Split, found: Mapping[str, np.ndarray]) -> list[Question]:
    """Return up to eight queries, of as many classes as possible, each in the order in which they were drawn.

    ``found`` maps a method to the positions of the items that it finds first, shape (n_queries, k).
    """
    return [_question(split, number, found) for number in _chosen(split.label_index[split.query])]


def _chosen(labels: np.ndarray) -> list[int]:
    """Return the first query of each class, then the second ones; those without a label last."""
    seen: dict[int, int] = {}
    places = []
    for number, label in enumerate(labels.tolist()):
        place = seen[label] = seen.get(label, 0) + 1
        places.append((label < 0, place, number))
    return [number for _, _, number in sorted(places)[:_N_QUESTIONS]]


def _question(split: Split, number: int, found: Mapping[str, np.ndarray]) -> Question:
    row = int(split.query[number])
    answers = []
    for method, positions in found.items():
        rows = split.base[positions[number]]
        known = (split.label_index[rows] >= 0) & (split.label_index[row] >= 0)
        same = split.label_index[rows] == split.label_index[row]
        right = [bool(s) if k else None for s, k in zip(same, known, strict=True)]
        answers.append(Answer(method, rows.tolist(), right))
    return Question(row, _label_of(split, row), answers)


def _label_of(split: Split, row: int) -> Any:
    if split.labels is None or split.label_index[row] < 0:
        return None
    label = split.labels[row]
    return label.item() if isinstance(label, np.generic) else label
