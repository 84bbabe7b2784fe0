"""Kept vectors: how they can be kept, their file, and the nearest ones by comparing all of them."""

import numpy as np

KINDS = ("float16", "int8")


def vector_file(folder):
    (path,) = folder.glob("vectors-*.bin")
    return path


def brute_force(query, stored, ids, k, metric="euclidean"):
    """Return ids and distances by comparing the query with every stored vector."""
    if metric == "euclidean":
        distances = np.linalg.norm(stored - query, axis=1)
    else:
        distances = 1 - stored @ query / (np.linalg.norm(stored, axis=1) * np.linalg.norm(query))
    order = np.lexsort((ids, distances))[:k]
    return np.asarray(ids)[order].tolist(), distances[order]
