"""How often predictions made before an answer agreed with it: an estimate of accuracy that needs no test set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .events import Answer

__all__ = ["CurvePoint", "agreement_curve"]

_WINDOW = 20  # answers: few enough to follow the lesson, enough for an interval that says something
_Z = 1.96  # of a 95% interval


class CurvePoint(NamedTuple):
    """Where a lesson stood after an answer.

    ``agreement`` is the share of the last ``n_compared`` labels, 20 at most, that had been predicted; None without
    any. ``low`` and ``high`` bound it with 95% confidence (Wilson). ``n_changed`` counts the items whose prediction
    the answer changed.
    """

    n_given: int
    agreement: float | None
    low: float | None
    high: float | None
    n_compared: int
    n_changed: int


def agreement_curve(answers: Iterable[Answer], window: int = _WINDOW, *, only_random: bool = False) -> list[CurvePoint]:
    """Return one point per answer, in the order of the answers; labels that replace others are not compared."""
    hits: list[bool] = []
    n_given, points = 0, []
    for answer in answers:
        if answer.label is not None:
            hits += [
                predicted == answer.label
                for predicted, before, way in zip(answer.predicted, answer.before, answer.ways, strict=True)
                if predicted is not None and before is None and (way == "random" or not only_random)
            ]
        n_given += _n_added(answer)
        points.append(CurvePoint(n_given, *_share(hits[-window:]), answer.n_changed))
    return points


def _n_added(answer: Answer) -> int:
    had = sum(label is not None for label in answer.before)
    return -had if answer.label is None else len(answer.ids) - had


def _share(hits: list[bool]) -> tuple[float | None, float | None, float | None, int]:
    """Return a share, the bounds of its Wilson interval, and of how many it is one."""
    n = len(hits)
    if n == 0:
        return None, None, None, 0
    share = sum(hits) / n
    center = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * float(np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)))
    return share, max(0.0, center - half), min(1.0, center + half), n
