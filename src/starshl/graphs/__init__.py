"""Graphs of near rows: what unlabeled rows know about each other."""

from .neighbor_graph import NeighborGraph
from .partitions import cluster_graph, modularity, n_coherent_clusters, suggest_n_clusters
from .spreading import Spread, SpreadLabels, spread_index, spread_labels

__all__ = [
    "NeighborGraph",
    "Spread",
    "SpreadLabels",
    "cluster_graph",
    "modularity",
    "n_coherent_clusters",
    "spread_index",
    "spread_labels",
    "suggest_n_clusters",
]
