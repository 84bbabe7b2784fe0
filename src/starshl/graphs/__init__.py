"""Graphs of near rows: what unlabeled rows know about each other."""

from .neighbor_graph import NeighborGraph
from .spreading import Spread, SpreadLabels, spread_index, spread_labels

__all__ = ["NeighborGraph", "Spread", "SpreadLabels", "spread_index", "spread_labels"]
