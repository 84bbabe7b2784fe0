"""Suspects: items whose label is probably wrong, because all other labeled items speak against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import hashers
from .._common.labels import Label
from .labeled_vectors import labeled_vectors

if TYPE_CHECKING:
    from .collection import Collection

_N_BITS = 64  # a fit needs a length; class probabilities do not depend on it


class Suspect(NamedTuple):
    """An item, its label, the class that the others say it is of, and how probably the label is wrong."""

    id: int
    label: Label
    likely: Label
    probability: float


def find_suspects(collection: Collection, n: int | None, probability: float) -> list[Suspect]:
    """Return items by the probability that their label is wrong, the highest first.

    Each labeled item gets the class probabilities of a fit without it, in closed form. The only item of a class is left
    out: without it, nothing is known of its class.
    """
    ids, rows, labels = labeled_vectors(collection, "wrong labels cannot be told from right ones")
    labeled = np.flatnonzero(np.array([label is not None for label in labels], bool))
    names = labels[labeled]
    if len(set(names)) < 2:
        return []
    hasher = hashers.StarRidge(_N_BITS, n_jobs=collection.n_jobs, random_state=0).fit(rows[labeled], names)
    shares = hasher.training_proba()
    classes = hasher.classes_.tolist()
    position_of = {name: position for position, name in enumerate(classes)}
    own = np.array([position_of[name] for name in names])
    every = np.arange(len(own))
    right = shares[every, own]
    shares[every, own] = -1.0
    likely = shares.argmax(axis=1)
    listed = (1.0 - right >= probability) & (np.bincount(own, minlength=len(classes))[own] > 1)
    order = np.argsort(right, kind="stable")
    return [
        Suspect(int(ids[labeled[row]]), classes[own[row]], classes[likely[row]], float(1.0 - right[row]))
        for row in order[listed[order]][:n].tolist()
    ]
