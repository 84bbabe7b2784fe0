"""Graphs of near rows: what unlabeled rows know about each other."""

from __future__ import annotations

from .clusters import cluster_graph, modularity, n_coherent_clusters, suggest_n_clusters
from .label_spreading import Spread, SpreadLabels, spread_index, spread_labels
from .layout import map_codewords, map_items
from .neighbor_graph import NeighborGraph

__all__ = [
    "NeighborGraph",
    "Spread",
    "SpreadLabels",
    "cluster_graph",
    "map_codewords",
    "map_items",
    "modularity",
    "n_coherent_clusters",
    "spread_index",
    "spread_labels",
    "suggest_n_clusters",
]
