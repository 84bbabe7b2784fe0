"""MultiIndex: small radii among very many different codes, by multi-index hashing (Norouzi et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import combinations
from math import comb, log2
from typing import NamedTuple

import numpy as np

from .._common.threads import run_all, tiles
from . import _multi_loops as loops
from .items import FlatItems, Hits
from .memory import CodeIndex

_MAX_PIECE_BITS = 24  # 64 MB per table
_QUERIES_PER_TASK = 16  # balls differ in cost: small tasks share it evenly
# A probe or a candidate costs one or two cache misses; in that time the flat scan passes this many codes.
CODES_PER_PROBE = 300
_EVERY_ROW = np.empty(0, np.bool_)


class Tables(NamedTuple):
    """One table per piece: rows whose piece has value v are ``rows[t, starts[t, v] : starts[t, v + 1]]``."""

    starts: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class MultiItems(FlatItems):
    """Flat items with tables that the first search by radius builds, and that belong to these items alone."""

    # Empty, or the tables. Threads that come first together may build them twice, with equal results.
    built: list[Tables] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(array.nbytes for tables in self.built for array in tables)

    def within(self, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        radius = int(radii.max(initial=0))
        if not self.n_items or CODES_PER_PROBE * self._cost(radius) > self.n_items:
            return super().within(queries, radii, mask, n_jobs)
        probe = partial(self._probe, self._tables(n_jobs), queries, radii, mask)
        parts = run_all((partial(probe, some) for some in tiles(len(radii), _QUERIES_PER_TASK)), n_jobs)
        hits = [pair for part in parts for pair in part]
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in hits], dtype=np.int64)])
        rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in hits)])
        return starts, rows, np.concatenate([np.empty(0, np.int32), *(distances for _, distances in hits)])

    def _probe(
        self, tables: Tables, queries: np.ndarray, radii: np.ndarray, mask: np.ndarray | None, some: slice
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        first_bits, widths = self._pieces()
        passing = _EVERY_ROW if mask is None else mask
        hits = []
        for q in range(some.start, some.stop):
            piece_radii = _piece_radii(int(radii[q]), len(widths))
            flips = _flips(int(widths[0]), int(piece_radii[0]))
            query = np.ascontiguousarray(queries[:, q : q + 1])
            rows, distances = loops.probe_tables(
                self.planes, *tables, query, radii[q], first_bits, widths, piece_radii, flips, passing
            )
            order = np.lexsort((rows, distances))
            hits.append((rows[order], distances[order]))
        return hits

    def _tables(self, n_jobs: int | None) -> Tables:
        if not self.built:
            self.built[:] = [self._build_tables(n_jobs)]
        return self.built[0]

    def _build_tables(self, n_jobs: int | None) -> Tables:
        first_bits, widths = self._pieces()
        starts = np.zeros((len(widths), (1 << int(widths[0])) + 1), np.uint32)
        rows = np.empty((len(widths), self.n_items), np.uint32)

        def build(t: int) -> None:
            loops.fill_table(self.planes, self.n_items, first_bits[t], widths[t], starts[t], rows[t])

        run_all((partial(build, t) for t in range(len(widths))), n_jobs)
        return Tables(starts, rows)

    def _pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Return first bits and widths: about log2(len) bits per piece, so that a probe returns about one item."""
        longest = max(1, min(_MAX_PIECE_BITS, round(log2(self.n_items))))
        n_pieces = -(-self.n_bits // longest)
        widths = np.full(n_pieces, self.n_bits // n_pieces)
        widths[: self.n_bits % n_pieces] += 1
        return np.cumsum(widths) - widths, widths

    def _cost(self, radius: int) -> float:
        """Return the expected number of probes and candidates of one query among random codes."""
        _, widths = self._pieces()
        cost = 0.0
        for width, max_flips in zip(widths.tolist(), _piece_radii(radius, len(widths)).tolist(), strict=True):
            probes = sum(comb(width, n_flipped) for n_flipped in range(max_flips + 1))
            cost += probes * (1 + self.n_items / 2.0**width)
        return cost


class MultiIndex(CodeIndex):
    r"""A flat index with tables that find small balls without a scan.

    A code is cut into m pieces. If two codes differ in at most r bits, they differ in at most
    :math:`\lfloor r/m \rfloor` bits in one of the first :math:`r \bmod m + 1` pieces, or in one bit fewer in
    one of the others (Norouzi, Punjani and Fleet 2012, Section 3): tables of the pieces give all candidates.
    If that would cost more than a scan, and for ``search`` by k, the scan is used: the answers are the same.

    The tables take 4 bytes per item and piece on top of a :class:`FlatIndex`. They are built at the first
    search by radius and dropped by additions and removals.

    Parameters
    ----------
    n_bits : int
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> from starshl.index import MultiIndex
    >>> signs = np.random.default_rng(0).choice([-1, 1], size=(1000, 64))
    >>> index = MultiIndex.from_codes(BinaryCodes.from_signs(signs))
    >>> index.search_radius(index.reconstruct([5]), radius=3).ids.tolist()
    [5]
    """

    kind = "multi"
    items_type = MultiItems


def _piece_radii(radius: int, n_pieces: int) -> np.ndarray:
    """Return how many bits each piece may differ in; -1 where its table need not be probed."""
    radii = np.full(n_pieces, radius // n_pieces - 1)
    radii[: radius % n_pieces + 1] += 1
    return radii


@lru_cache(maxsize=64)
def _flips(width: int, max_flips: int) -> np.ndarray:
    """Return all integers of ``width`` bits with at most ``max_flips`` of them set, fewest first."""
    flips = [0]
    for n_flipped in range(1, max_flips + 1):
        flips += [sum(1 << bit for bit in bits) for bits in combinations(range(width), n_flipped)]
    return np.array(flips, np.int64)
