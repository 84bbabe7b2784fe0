"""starshl: short binary codes learned from labels, a few labels or none.

Names are imported on first use, so that ``import starshl`` and ``starshl --help`` answer at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ._common.lazy import on_first_use
from ._common.loop_cache import provide_loop_cache
from ._version import __version__

if TYPE_CHECKING:
    from .codes import BinaryCodes, Codebook
    from .collection import Collection, binarize
    from .hashers import HybridHasher, StarRidge, StarSHL, load, model_card
    from .index import make_index
    from .learning import NeighborGraph, spread_labels

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

provide_loop_cache(Path(__file__).parent)
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "codes": ["BinaryCodes", "Codebook"],
        "collection": ["Collection", "binarize"],
        "hashers": ["HybridHasher", "StarRidge", "StarSHL", "load", "model_card"],
        "index": ["make_index"],
        "learning": ["NeighborGraph", "spread_labels"],
        "_version": ["__version__"],
    },
)
