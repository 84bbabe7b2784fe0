"""The hasher for users who do not name one, and why it was chosen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._common.validation import check_integer
from ..exceptions import InputError
from ..hashers.base import BaseHasher
from ..hashers.baselines.itq import ITQ
from ..hashers.fitting import fit_lengths
from ..hashers.hybrid import HybridHasher
from ..learning.graphs.diffusion import diffusion_columns
from ..learning.graphs.neighbor_graph import NeighborGraph
from ..learning.linalg import principal_directions
from .benchmark import N_NEAREST, N_SHORTLIST, ByCodes, HeldOut, hold_out, recall
from .float_search import ByVectors
from .verdict import percent

_N_BITS = 32  # docs/choose.md compares lengths
# Without labels, codes are compared on at most this many rows, whatever the size of the data.
_MOST_ROWS = 3000
# Clusters of fewer rows were not tried, and a list of 100 would hold much of them.
_LEAST_ROWS = 500
# Of the neighbors of the vectors; what hybrid codes without labels may lose against ITQ.
_ALLOWED_LOSS = 0.03
# On 2,500 rows of digits, USPS, MNIST and AG News, where clusters agree with hidden labels, the share was .02 to .13
# larger; by Hamming distances on Gaussian and uniform rows, which have no clusters, it grew by at most .002.
_LEAST_GAIN = 0.01
# Standard errors that a gain must have. With two, 170 queries of digits were not enough to see a gain of .03.
_SURE = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A hasher that is not fitted, the lengths of its codes, and the choice in plain words."""

    hasher: BaseHasher
    lengths: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What codes find without a label: shares of well-connected items, for each query, and of the nearest vectors."""

    shares: np.ndarray
    recall: float

    @property
    def connected(self) -> float:
        return float(self.shares.mean())

    def is_better_connected(self, other: TrialResult) -> bool:
        """Tell whether more items are connected, by enough to matter and by more than chance would do."""
        gains = self.shares - other.shares
        chance = gains.std(ddof=1) / np.sqrt(len(gains))
        return bool(gains.mean() >= max(_LEAST_GAIN, _SURE * chance))


def choose_hasher(split: HeldOut, hasher: BaseHasher | None, n_bits: int | Sequence[int] | None) -> Choice:
    """Return the given hasher, or choose one: with labels HybridHasher, else what measures better without labels."""
    lengths = None if n_bits is None else _checked_lengths(n_bits)
    if hasher is not None:
        lengths = lengths or (_own_length(hasher, split),)
        given = hasher.at_length(lengths[0]) if n_bits is not None else hasher
        return Choice(given, lengths, f"{type(hasher).__name__} was used, as asked for.")
    lengths = _possible_lengths(split, lengths)
    if not split.has_labels:
        return _choose_without_labels(split, lengths)
    reason = (
        "HybridHasher was chosen, because rows have labels: its codes hold the class and the neighbors of a row, so a "
        "search finds near items of the likely class."
    )
    return Choice(_hybrid(lengths[0]), lengths, reason)


def _checked_lengths(n_bits: int | Sequence[int]) -> tuple[int, ...]:
    given = n_bits if isinstance(n_bits, Sequence | np.ndarray) and not isinstance(n_bits, str) else [n_bits]
    lengths = tuple(check_integer(length, "n_bits", low=1) for length in given)
    if not lengths:
        raise InputError(
            "{parameter} is an empty list",
            "give one length or several, such as [16, 32, 64]",
            parameter="n_bits",
            value=[],
        )
    if len(set(lengths)) < len(lengths):
        raise InputError(
            "{parameter} is {value}, which names a length twice",
            advice="Name each length once.",
            parameter="n_bits",
            value=list(lengths),
        )
    return lengths


def _own_length(hasher: BaseHasher, split: HeldOut) -> int:
    """Return the length of the codes of a hasher; one with "all" bits has one for each feature."""
    params = hasher.get_params()
    n_bits = params.get("hasher__n_bits", params.get("n_bits"))
    return int(n_bits) if isinstance(n_bits, int | np.integer) else split.X.shape[1]


def _hybrid(n_bits: int) -> HybridHasher:
    return HybridHasher(n_bits, form="residual", random_state=0)


def _possible_lengths(split: HeldOut, lengths: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the lengths, or the default one, cut where rows vary in fewer directions; refuse longer ones."""
    longest = _N_BITS if lengths is None else max(lengths)
    n_classes = len(np.unique(split.label_index[split.base][split.label_index[split.base] >= 0]))
    class_bits = max(1, (n_classes - 1).bit_length()) if n_classes else 0
    rank = len(principal_directions(split.items.astype(np.float64), longest)[0])
    limit = max(1, rank + class_bits)
    if lengths is None:
        return (min(_N_BITS, limit),)
    if longest > limit:
        of_class = "{class_bits} bits of the class and {rank} of the neighbors, {limit} in all"
        raise InputError(
            "{parameter} is {value}",
            "the codes are fitted on {n_base:,} of the {n_rows:,} rows (the others measure them), which vary in {rank} "
            f"directions and give {of_class if class_bits else '{rank} bits'}",
            "Lower {parameter}. {unlimited} alone has no such limit.",
            parameter="n_bits",
            value=longest,
            n_base=len(split.base),
            n_rows=len(split.X),
            class_bits=class_bits,
            rank=rank,
            limit=limit,
            unlimited="StarRidge" if class_bits else "LSHash",
        )
    return lengths


def _choose_without_labels(split: HeldOut, lengths: tuple[int, ...]) -> Choice:
    """Return HybridHasher, whose class field then holds clusters, if it measures better than ITQ on held-out rows.

    Better: more of the ten items that it finds are among the hundred that the neighbor graph connects best with the
    query, and it finds nearly as many of the nearest vectors. Graph neighbors share hidden labels more often than the
    nearest vectors do, where there are clusters. With several lengths, means over all of them count.
    """
    itq = ITQ(lengths[0], random_state=0)
    if len(split.base) < _LEAST_ROWS:
        reason = "ITQ was chosen, because there are no labels to learn from and too few rows to look for clusters."
        return Choice(itq, lengths, reason)
    sample = split.X[split.base[:_MOST_ROWS]]
    trial = hold_out(sample, None, None, 0)
    strongest = _best_connected(trial)
    plain, clustered = (_try(hasher, lengths, trial, strongest) for hasher in (itq, _hybrid(lengths[0])))
    with_clusters, reason = prefer_clusters(plain, clustered, len(trial.query))
    return Choice(_hybrid(lengths[0]) if with_clusters else itq, lengths, reason)


def prefer_clusters(plain: TrialResult, clustered: TrialResult, n_queries: int) -> tuple[bool, str]:
    """Return whether HybridHasher with clusters is better than ITQ on held-out rows, and the reason in plain words."""
    connected = (
        f"{percent(clustered.connected)} of the ten items that HybridHasher finds share close neighbors with the query "
        f"(ITQ: {percent(plain.connected)})"
    )
    neighbors = (
        f"{percent(clustered.recall)} of the nearest vectors are among its 100 nearest codes "
        f"(ITQ: {percent(plain.recall)})"
    )
    no_label = f"because there are no labels to learn from, and on {n_queries} held-out rows"
    if clustered.recall < plain.recall - _ALLOWED_LOSS:
        loss = f"HybridHasher with clusters loses too many neighbors: only {neighbors}"
        return False, f"ITQ was chosen, {no_label} {loss}."
    if not clustered.is_better_connected(plain):
        return False, f"ITQ was chosen, {no_label} HybridHasher with clusters gains too little to be sure: {connected}."
    return True, f"HybridHasher with clusters was chosen, {no_label} it beats ITQ: {connected}, and {neighbors}."


def _best_connected(trial: HeldOut) -> np.ndarray:
    """Return for each query which items are the hundred of the largest diffusion from it, as booleans."""
    graph = NeighborGraph.of_rows(trial.X)
    strength = diffusion_columns(graph, trial.query)[:, trial.base]
    best = np.argpartition(-strength, N_SHORTLIST - 1, axis=1)[:, :N_SHORTLIST]
    chosen = np.zeros(strength.shape, bool)
    np.put_along_axis(chosen, best, True, axis=1)
    return chosen


def _try(hasher: BaseHasher, lengths: tuple[int, ...], trial: HeldOut, strongest: np.ndarray) -> TrialResult:
    nearest = ByVectors(trial.items).nearest(trial.queries, N_NEAREST)
    connected, recalls = [], []
    with warnings.catch_warnings():
        # Codes too short for the clusters lose by their figures.
        warnings.simplefilter("ignore", UserWarning)
        for fitted in fit_lengths(hasher, trial.items, None, lengths):
            found = ByCodes(fitted, fitted.encode_database(trial.items)).nearest(trial.queries, N_SHORTLIST)
            connected.append(np.take_along_axis(strongest, found[:, :N_NEAREST], axis=1).mean(axis=1))
            recalls.append(recall(nearest, found))
    return TrialResult(np.mean(connected, axis=0), float(np.mean(recalls)))
