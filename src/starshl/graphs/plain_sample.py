"""The plain kernel on more rows than fit into one matrix: a sample of them judges all others."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._threads import run_all, single_threaded_blas, tiles
from .plain_ridge import LABEL_RIDGE, PlainKernel, inverse_with_ridge

__all__ = ["LARGEST_EXACT", "sampled_scores", "what_judges"]

LARGEST_EXACT = 10_000  # rows; the inverse takes 0.4 GB and half a minute
_SAMPLE = 5_000  # half of that, for an eighth of the time
_TRUSTED = 2.3  # ridge up to which the graph decides alone: a sample of pseudo-labels knows less than all of them
_TILE_ROWS = 2048  # 41 or 82 MB of kernel values per thread


def sampled_scores(
    plain: PlainKernel, labeled: np.ndarray, targets: np.ndarray, ridge: float, on_graph: np.ndarray
) -> np.ndarray:
    """Return the graph's scores where it is trusted, else those of a ridge regression on a sample of the rows.

    The sample holds all labeled rows, up to its size. Its own rows are scored without themselves.
    """
    if ridge <= _TRUSTED:
        return on_graph
    rng = np.random.RandomState(0)
    some = labeled if len(labeled) <= _SAMPLE else np.sort(rng.choice(labeled, _SAMPLE, replace=False))
    others = np.setdiff1d(np.arange(plain.n_rows), labeled)
    n_others = min(len(others), _SAMPLE - len(some))
    sample = np.sort(np.concatenate([some, rng.choice(others, n_others, replace=False)]))
    diagonal = np.where(np.isin(sample, labeled), LABEL_RIDGE, ridge)
    with single_threaded_blas():
        inverse = inverse_with_ridge(plain.block(sample, sample), diagonal)
        dual = inverse @ targets[sample].astype(inverse.dtype)
        scores = np.empty_like(targets)

        def fill(tile: slice) -> None:
            scores[tile] = plain.block(np.arange(tile.start, tile.stop), sample) @ dual

        run_all([partial(fill, tile) for tile in tiles(plain.n_rows, _TILE_ROWS)])
        scores[sample] = targets[sample] - dual / inverse.diagonal()[:, None]
    return scores


def what_judges(n_rows: int, ridge: float) -> str:
    """Return what a note adds about who judges the rows: nothing if all others do."""
    if n_rows <= LARGEST_EXACT:
        return ""
    judge = "the graph alone decides" if ridge <= _TRUSTED else f"a sample of {_SAMPLE:,} rows judges the others"
    return f"; with more than {LARGEST_EXACT:,} rows {judge}"
