"""What the hasher makes of one query: its code, the nearest codeword, likely classes, and whether it fits any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Label
from ..codes import BinaryCodes
from ..collection import Collection
from ..collection.prepared_rows import without_steps
from ..features import inner_hasher
from .classes import class_names, holds_clusters

__all__ = ["STRANGE", "Guess", "Portrait", "bits_of", "portrait_of"]

#: Of samples of known classes, about one in twenty has a novelty above it.
STRANGE = 0.95
_MOST_GUESSES, _LEAST_SHARE = 4, 0.005


@dataclass(frozen=True, slots=True)
class Guess:
    """A class and its probability, None if the hasher gives none."""

    label: Label
    probability: float | None


@dataclass(frozen=True, slots=True)
class Portrait:
    """A query as the hasher sees it.

    Attributes
    ----------
    bits : list of bool, the code
    n_class_bits : int, how many of them hold the class; 0 if that is not known
    guesses : the likeliest classes
    novelty : float or None, the share of training rows that look more familiar; near 1, it is none of the classes
    are_clusters : bool, whether the guesses are clusters, which no person has named
    """

    bits: list[bool]
    n_class_bits: int
    guesses: list[Guess]
    novelty: float | None
    are_clusters: bool = False


def portrait_of(collection: Collection, vector: np.ndarray) -> Portrait:
    """Return what the hasher of a collection makes of a vector."""
    hasher: Any = without_steps(collection.hasher)
    rows = np.asarray(vector)[None]
    return Portrait(
        bits=bits_of(hasher.encode(rows))[0],
        n_class_bits=int(getattr(inner_hasher(hasher), "class_bits_", 0)),
        guesses=_guesses(hasher, rows),
        novelty=_novelty(hasher, rows),
        are_clusters=holds_clusters(hasher),
    )


def bits_of(codes: BinaryCodes) -> list[list[bool]]:
    """Return codes as booleans."""
    return (codes.to_signs() > 0).tolist()


def _guesses(hasher: Any, rows: np.ndarray) -> list[Guess]:
    if hasattr(hasher, "predict_proba"):
        shares = hasher.predict_proba(rows)[0]
        best = [place for place in np.argsort(-shares, kind="stable")[:_MOST_GUESSES] if shares[place] >= _LEAST_SHARE]
        classes = class_names(hasher)
        return [Guess(classes[place], float(shares[place])) for place in best]
    if hasattr(hasher, "predict") and len(getattr(hasher, "classes_", ())) and not holds_clusters(hasher):
        return [Guess(np.asarray(hasher.predict(rows)).tolist()[0], None)]
    return []


def _novelty(hasher: Any, rows: np.ndarray) -> float | None:
    if not hasattr(hasher, "novelty"):
        return None
    try:
        return float(hasher.novelty(rows)[0])
    except (ValueError, AttributeError):
        return None  # a fit without labels learns nothing about strangers
