"""starshl: short binary codes learned from labels, a few labels or none.

Names are imported on first use, so that ``import starshl`` and ``starshl --help`` answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from .binarization.binarize import binarize
    from .cards import model_card
    from .catalog import load
    from .codebooks import Codebook
    from .codes import BinaryCodes
    from .collection import Collection
    from .graphs import NeighborGraph, spread_labels
    from .hybrid import HybridHasher
    from .index import make_index
    from .models import StarRidge, StarSHL

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
    "Codebook": "starshl.codebooks",
    "Collection": "starshl.collection",
    "HybridHasher": "starshl.hybrid",
    "NeighborGraph": "starshl.graphs",
    "StarRidge": "starshl.models",
    "StarSHL": "starshl.models",
    "binarize": "starshl.binarization",
    "load": "starshl.catalog",
    "make_index": "starshl.index",
    "model_card": "starshl.cards",
    "spread_labels": "starshl.graphs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'starshl' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
