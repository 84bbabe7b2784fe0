"""What the hasher of a collection makes of a vector: its code, the classes that it may be of, and how new it looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._common.labels import Label
from ...codes.binary import BinaryCodes
from ...collection.collection import Collection
from ...collection.explanation import n_class_bits
from .rendering import class_names

#: Of samples of known classes, about one in twenty has a novelty above it.
NOVEL = 0.95
_MOST_PREDICTIONS, _LEAST_PROBABILITY = 4, 0.005


@dataclass(frozen=True, slots=True)
class PredictedClass:
    """A class and its probability, None if the hasher gives none."""

    label: Label | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class QueryDescription:
    """What the hasher makes of a query.

    Attributes
    ----------
    bits : list of bool, the code
    n_class_bits : int, how many of them hold the class; 0 if that is not known
    predictions : the likeliest classes
    novelty : float or None, the share of training rows that look more familiar; near 1, it is none of the classes
    are_clusters : bool, whether the classes are clusters, which no person has named
    """

    bits: list[bool]
    n_class_bits: int
    predictions: list[PredictedClass]
    novelty: float | None
    are_clusters: bool = False
    knows_probabilities: bool = True

    @property
    def is_novel(self) -> bool:
        """Whether the query looks like none of the classes."""
        return self.novelty is not None and self.novelty >= NOVEL


def describe_query(collection: Collection, vector: np.ndarray) -> QueryDescription:
    """Return what the hasher of a collection makes of a vector."""
    hasher = collection.hasher.without_steps()
    rows = np.asarray(vector)[None]
    return QueryDescription(
        bits=bits_of(hasher.encode(rows))[0],
        n_class_bits=n_class_bits(hasher),
        predictions=predicted_classes(collection, vector),
        novelty=float(hasher.novelty(rows)[0]) if "novelty" in hasher.supports else None,
        are_clusters=hasher.holds_clusters,
        knows_probabilities=hasher.class_part.fit_summary.knows_probabilities,
    )


def bits_of(codes: BinaryCodes) -> list[list[bool]]:
    """Return the bits of codes, one list per code."""
    return (codes.to_signs() > 0).tolist()


def predicted_classes(collection: Collection, vector: np.ndarray) -> list[PredictedClass]:
    """Return the likeliest classes of a vector under the names that they have now."""
    hasher, rows = collection.hasher.without_steps(), np.asarray(vector)[None]
    if "predict" not in hasher.supports or (hasher.holds_clusters and "predict_proba" not in hasher.supports):
        return []
    if hasher.holds_clusters:
        names, shares = class_names(collection), hasher.predict_proba(rows)[0].tolist()
    elif "predict_proba" in hasher.supports:
        found = collection.predict(rows, probabilities=True)
        names, shares = [*(found.classes or [])], (found.probabilities or [[]])[0]
    else:
        (label,) = collection.predict(rows).labels
        return [] if label is None else [PredictedClass(label, None)]
    likeliest = sorted(zip(names, shares, strict=True), key=lambda pair: -pair[1])[:_MOST_PREDICTIONS]
    return [PredictedClass(name, share) for name, share in likeliest if share >= _LEAST_PROBABILITY]
