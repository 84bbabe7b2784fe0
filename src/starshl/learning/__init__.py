"""The mathematics below the hashers: kernels, solvers, and graphs of near rows; arrays in, arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.lazy import on_first_use

if TYPE_CHECKING:
    from .graphs.clusters import cluster_graph, modularity, suggest_n_clusters
    from .graphs.label_spreading import SpreadLabels, spread_labels
    from .graphs.layout import map_items
    from .graphs.neighbor_graph import NeighborGraph

__all__ = [
    "NeighborGraph",
    "SpreadLabels",
    "cluster_graph",
    "map_items",
    "modularity",
    "spread_labels",
    "suggest_n_clusters",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "graphs.clusters": ["cluster_graph", "modularity", "suggest_n_clusters"],
        "graphs.label_spreading": ["SpreadLabels", "spread_labels"],
        "graphs.layout": ["map_items"],
        "graphs.neighbor_graph": ["NeighborGraph"],
    },
)
