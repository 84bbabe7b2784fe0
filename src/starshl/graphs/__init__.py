"""Graphs of near rows: what unlabeled rows know about each other."""

from .neighbor_graph import NeighborGraph

__all__ = ["NeighborGraph"]
