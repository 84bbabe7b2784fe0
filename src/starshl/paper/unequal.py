"""What the sizes of classes alone score, wherever some classes are much larger than others."""

from __future__ import annotations

from collections.abc import Sequence

from ..reports.results import CLASS_MEAN, ProtocolResults
from ..reports.statistics import summarize
from ..reports.tables import Runs

__all__ = ["BALANCED", "MAJORITY", "RANDOM", "rows_without_learning", "told_if_unequal"]

BALANCED = "accuracy, balanced"
RANDOM, MAJORITY = "random order", "largest class"


def rows_without_learning(protocol: ProtocolResults, metrics: Sequence[str]) -> dict[str, list[Runs]]:
    """Return what a random order of the database scores, and what naming or retrieving only the largest class does."""
    even = dict.fromkeys(protocol.majority_accuracy, 1 / protocol.n_classes)
    chance, always = protocol.random_precision, protocol.majority_accuracy
    random = {"P@10": chance, "P@50": chance, CLASS_MEAN: even}
    largest = {"P@10": always, "P@50": always, CLASS_MEAN: even, "accuracy": always, BALANCED: even}
    return {name: [own.get(metric, {}) for metric in metrics] for name, own in ((RANDOM, random), (MAJORITY, largest))}


def told_if_unequal(protocol: ProtocolResults) -> list[str]:
    """Say in one sentence what needs no learning; nothing where classes are equally large."""
    chance, largest = (summarize(own.values()) for own in (protocol.random_precision, protocol.majority_accuracy))
    if not protocol.unequal or chance is None or largest is None:
        return []
    return [
        f"Classes are unequal: a random order of the database has a P@10 of {chance.mean:.3f}, and naming the "
        f"largest class an accuracy of {largest.mean:.3f} (balanced: {1 / protocol.n_classes:.3f})."
    ]
