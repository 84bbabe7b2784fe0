"""Maps: items and codewords as points in the plane."""

from .codewords import map_codewords
from .layout import map_items

__all__ = ["map_codewords", "map_items"]
