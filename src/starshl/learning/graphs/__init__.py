"""Graphs of near rows: what unlabeled rows know about each other."""
