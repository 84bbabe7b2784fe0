"""starshl: short binary codes learned from labels, a few labels or none.

Names are imported on first use, so that ``import starshl`` and ``starshl --help`` answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .codes.binary import BinaryCodes
    from .codes.codebook import Codebook
    from .collection.collection import Collection
    from .collection.importing.vectors import binarize
    from .hashers.catalog import load
    from .hashers.hybrid import HybridHasher
    from .hashers.model_card import model_card
    from .hashers.star.star_ridge import StarRidge
    from .hashers.star.star_shl import StarSHL
    from .index.choice import make_index
    from .learning.graphs.label_spreading import spread_labels
    from .learning.graphs.neighbor_graph import NeighborGraph

from ._version import __version__

__all__ = [
    "BinaryCodes",
    "Codebook",
    "Collection",
    "HybridHasher",
    "NeighborGraph",
    "StarRidge",
    "StarSHL",
    "__version__",
    "binarize",
    "load",
    "make_index",
    "model_card",
    "spread_labels",
]

_HOMES = {
    "BinaryCodes": "starshl.codes",
    "Codebook": "starshl.codes",
    "Collection": "starshl.collection",
    "HybridHasher": "starshl.hashers.hybrid",
    "NeighborGraph": "starshl.learning.graphs",
    "StarRidge": "starshl.hashers.star.star_ridge",
    "StarSHL": "starshl.hashers.star.star_shl",
    "binarize": "starshl.collection.importing.vectors",
    "load": "starshl.hashers.catalog",
    "make_index": "starshl.index",
    "model_card": "starshl.hashers.model_card",
    "spread_labels": "starshl.learning.graphs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'starshl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
