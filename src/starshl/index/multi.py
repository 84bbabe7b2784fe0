"""MultiIndex: small radii among very many different codes, by multi-index hashing (Norouzi et al. 2012)."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import combinations
from math import comb, log2

import numpy as np

from .._threads import run_all, tiles
from . import _multi_loops as loops
from .flat import FlatIndex

__all__ = ["MultiIndex"]

_WIDEST_PIECE = 24
_QUERIES_A_TASK = 16
_EVERY_ROW = np.empty(0, np.bool_)


class MultiIndex(FlatIndex):
    r"""A flat index with tables that find small balls without a scan.

    A code is cut into m pieces. If two codes differ in at most r bits, they differ in at most
    :math:`\lfloor r/m \rfloor` bits in one of the first :math:`r \bmod m + 1` pieces, or in one bit fewer in
    one of the others (Norouzi, Punjani and Fleet 2012, Section 3): tables of the pieces give all candidates.
    Wherever that would cost more than a scan, and for ``search`` by k, the scan is used: answers are equal.

    The tables take 4 bytes an item and piece more than a :class:`FlatIndex`. They are built at the first
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

    # A probe or a candidate is a cache miss or two; in its time the flat scan passes so many codes.
    _codes_a_probe = 300

    def __init__(self, n_bits: int, *, n_jobs: int | None = None) -> None:
        super().__init__(n_bits, n_jobs=n_jobs)
        self._tables = None

    @property
    def nbytes(self) -> int:
        """Bytes held, tables included."""
        if self._tables is None:
            return super().nbytes
        return super().nbytes + sum(array.nbytes for array in self._tables)

    def _insert(self, planes: np.ndarray, ids: np.ndarray) -> None:
        self._tables = None
        super()._insert(planes, ids)

    def _keep(self, mask: np.ndarray) -> None:
        self._tables = None
        super()._keep(mask)

    def _pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Return first bits and widths: about log2(len) bits each, so that a probe meets about one item."""
        longest = max(1, min(_WIDEST_PIECE, round(log2(len(self)))))
        n_pieces = -(-self.n_bits // longest)
        widths = np.full(n_pieces, self.n_bits // n_pieces)
        widths[: self.n_bits % n_pieces] += 1
        return np.cumsum(widths) - widths, widths

    def _within(self, queries: np.ndarray, radii: np.ndarray, mask) -> tuple[np.ndarray, ...]:
        radius = int(radii.max(initial=0))
        if not len(self) or self._codes_a_probe * self._cost(radius) > len(self):
            return super()._within(queries, radii, mask)
        if self._tables is None:
            self._tables = self._build_tables()
        probe = partial(self._probe, queries, radii, mask)
        parts = run_all((partial(probe, some) for some in tiles(len(radii), _QUERIES_A_TASK)), self.n_jobs)
        found = [pair for part in parts for pair in part]
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in found], dtype=np.int64)])
        rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in found)])
        return starts, rows, np.concatenate([np.empty(0, np.int32), *(distances for _, distances in found)])

    def _probe(self, queries, radii, mask, some: slice) -> list[tuple[np.ndarray, np.ndarray]]:
        first_bits, widths = self._pieces()
        starts, rows = self._tables
        passing = _EVERY_ROW if mask is None else mask
        found = []
        for q in range(some.start, some.stop):
            piece_radii = _piece_radii(int(radii[q]), len(widths))
            flips = _flips(int(widths[0]), int(piece_radii[0]))
            query = np.ascontiguousarray(queries[:, q : q + 1])
            hits, distances = loops.probe_tables(
                self._planes, starts, rows, query, radii[q], first_bits, widths, piece_radii, flips, passing
            )
            order = np.lexsort((hits, distances))
            found.append((hits[order], distances[order]))
        return found

    def _build_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and rows of all tables, one a line."""
        first_bits, widths = self._pieces()
        starts = np.zeros((len(widths), (1 << int(widths[0])) + 1), np.uint32)
        rows = np.empty((len(widths), len(self)), np.uint32)

        def build(t: int) -> None:
            loops.fill_table(self._planes, len(self), first_bits[t], widths[t], starts[t], rows[t])

        run_all((partial(build, t) for t in range(len(widths))), self.n_jobs)
        return starts, rows

    def _cost(self, radius: int) -> float:
        """Return the expected number of probes and candidates of one query among random codes."""
        _, widths = self._pieces()
        cost = 0.0
        for width, most in zip(widths.tolist(), _piece_radii(radius, len(widths)).tolist(), strict=True):
            probes = sum(comb(width, n_flipped) for n_flipped in range(most + 1))
            cost += probes * (1 + len(self) / 2.0**width)
        return cost


def _piece_radii(radius: int, n_pieces: int) -> np.ndarray:
    """Return how many bits each piece may differ in; -1 where its table need not be probed."""
    radii = np.full(n_pieces, radius // n_pieces - 1)
    radii[: radius % n_pieces + 1] += 1
    return radii


@lru_cache(maxsize=64)
def _flips(width: int, most: int) -> np.ndarray:
    """Return all integers of ``width`` bits with at most ``most`` of them set, by that number."""
    flips = [0]
    for n_flipped in range(1, most + 1):
        flips += [sum(1 << bit for bit in bits) for bits in combinations(range(width), n_flipped)]
    return np.array(flips, np.int64)
