"""A map as pages draw it: places, labels and confidences of all items in compact lists, and the codewords."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Label
from ..collection import Collection
from ..maps import map_codewords
from ..maps.layout import in_unit_square
from ..teaching import Lesson
from .classes import class_hasher, class_names

__all__ = ["CodewordPlace", "codeword_places", "item_places"]

# Places are whole numbers up to it: finer than any screen, and short in JSON.
_SCALE = 10_000
_CODE_BITS = 4  # 16 colors can be told apart
_COINCIDE, _SPREAD = 0.04, 0.045  # shares of the width of a map: nearer names cannot be read apart


@dataclass(frozen=True, slots=True)
class CodewordPlace:
    """A class, where its codeword is on the map, and the class whose codeword is nearest to it."""

    label: Label
    x: float
    y: float
    nearest: Label | None
    distance: int


def item_places(lesson: Lesson, collection: Collection) -> dict[str, Any]:
    """Return lists with one entry per item; ``label`` numbers the entries of ``labels``, -1 for none."""
    places, found = lesson.map(), lesson.predictions()
    labels = [each.label for each in lesson.state().classes]
    number = {label: place for place, label in enumerate(labels)} | {None: -1}
    first_bits = collection.codes(places.ids).to_signs()[:, :_CODE_BITS] > 0
    return {
        "version": lesson.version,
        "labels": [str(label) for label in labels],
        "ids": list(map(str, places.ids.tolist())),  # scripts hold numbers of 53 bits
        "x": np.round(_SCALE * places.x).astype(int).tolist(),
        "y": np.round(_SCALE * places.y).astype(int).tolist(),
        "label": [number[label] for label in found.labels],
        "sure": np.round(100 * np.asarray(found.confidences)).astype(int).tolist(),
        "given": np.asarray(found.given).astype(int).tolist(),
        "code": (first_bits @ (1 << np.arange(first_bits.shape[1]))).tolist(),
    }


def codeword_places(collection: Collection) -> list[CodewordPlace]:
    """Return the places of the codewords of all classes; none if the hasher has none."""
    inner = class_hasher(collection.hasher)
    words, names = getattr(inner, "codewords_", None), class_names(collection.hasher)
    if words is None or len(names) < 2 or len(words) < len(names):
        return []
    words = np.asarray(words)[: len(names)]
    distances = (words[:, None] != words[None]).sum(axis=2)
    np.fill_diagonal(distances, words.shape[1] + 1)
    return [
        CodewordPlace(names[row], float(x), float(y), names[int(near.argmin())], int(near.min()))
        for row, ((x, y), near) in enumerate(zip(_apart(map_codewords(words)), distances, strict=True))
    ]


def _apart(places: np.ndarray) -> np.ndarray:
    """Return places in which those that coincide stand around their common one: short words fill a plane poorly."""
    spread = places.astype(np.float64).copy()
    _, groups = np.unique(np.round(places / _COINCIDE), axis=0, return_inverse=True)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if len(members) > 1:
            angles = 2 * np.pi * np.arange(len(members)) / len(members)
            radius = min(0.3, _SPREAD * len(members))
            spread[members] += radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return in_unit_square(spread)
