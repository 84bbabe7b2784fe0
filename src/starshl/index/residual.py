"""ResidualIndex: codes that stand for vectors, searched by the distance of a query's own vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import run_all, single_threaded_blas
from .._common.validation import check_integer, check_number
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..codes.hamming import scan_tasks
from . import _residual_loops as loops
from .base import Neighbors, RadiusNeighbors
from .hybrid import MAX_CLASS_BITS, FloatRule
from .items import Candidates, Hits, PlaneItems, RunItems, WrappedItems, check_names
from .memory import MemoryIndex, passing_items

# Directions of single-precision rows are orthonormal up to a few millionths.
_ORTHONORMAL = 1e-3
_BEYOND = 1e300  # more than any distance
_BYTE_SIGNS = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    r"""What turns codes of a class field and neighbor bits back into vectors.

    A code of class c with neighbor bits b, which are -1 and +1, stands for

    .. math:: \hat x = \mu_c + W^\top (s \circ b).

    Parameters
    ----------
    centers : array of shape (n_classes, n_features)
        The vectors :math:`\mu_c`.
    components : array of shape (n_neighbor_bits, n_features)
        The orthonormal rows of W.
    scales : array of shape (n_neighbor_bits,)
        The mean distance s of a vector from its center in each direction.
    unit : float
        What squared distances are divided by.
    """

    centers: np.ndarray
    components: np.ndarray
    scales: np.ndarray
    unit: float

    def __post_init__(self) -> None:
        for name in ("centers", "components", "scales"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        object.__setattr__(self, "unit", float(self.unit))
        centers, components, scales = self.centers, self.components, self.scales
        if centers.ndim != 2 or not len(centers) or components.ndim != 2 or components.shape[1] != centers.shape[1]:
            raise ValueError(
                f"centers has shape {centers.shape} and components {components.shape}; they must be (n_classes, "
                "n_features) and (n_neighbor_bits, n_features)."
            )
        if scales.shape != (len(components),):
            raise ValueError(f"scales has shape {scales.shape}; there are {len(components)} components.")
        if not all(np.isfinite(array).all() for array in (centers, components, scales)):
            raise ValueError("Some numbers of the reconstruction are not finite.")
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise ValueError(f"unit is {self.unit}; it must be positive.")
        if not are_orthonormal(components):
            raise ValueError("The components are not orthonormal. Use directions such as those of ITQ.")

    @property
    def n_neighbor_bits(self) -> int:
        return len(self.components)

    def vectors(self, codes: BinaryCodes) -> np.ndarray:
        """Return the vectors that codes stand for, (n_codes, n_features)."""
        n_class_bits = codes.n_bits - self.n_neighbor_bits
        signs = codes.to_signs()[:, n_class_bits:]
        return self.centers[class_fields(codes, n_class_bits)] + (signs * self.scales) @ self.components


@dataclass(frozen=True, slots=True, eq=False)
class VectorQueries:
    """Queries of an index of reconstructed vectors: their vectors, and their codes, which hold the class.

    Parameters
    ----------
    codes : BinaryCodes
    vectors : array of shape (n_queries, n_features)
    """

    codes: BinaryCodes
    vectors: np.ndarray

    def __post_init__(self) -> None:
        if not isinstance(self.codes, BinaryCodes):
            raise TypeError(
                f"codes is a {type(self.codes).__name__}; it must be BinaryCodes. Get both from "
                "hasher.encode_queries(X)."
            )
        object.__setattr__(self, "vectors", _check_vectors(self.vectors, len(self.codes)))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | np.ndarray) -> VectorQueries:
        """Select queries."""
        return VectorQueries(self.codes[rows], self.vectors[rows])


def _check_vectors(vectors: ArrayLike, n_codes: int) -> np.ndarray:
    try:
        rows = np.asarray(vectors)
    except ValueError as error:
        raise ValueError(f"vectors has rows of different lengths ({error}). Give rows of equal length.") from error
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"vectors holds {rows.dtype}; it must hold numbers. Give the rows that were encoded.")
    if rows.ndim != 2 or len(rows) != n_codes:
        raise ValueError(
            f"vectors has shape {rows.shape}; with {counted(n_codes, 'code')} it must be ({n_codes}, n_features). Give "
            "one row per code."
        )
    if not np.isfinite(rows).all():
        raise ValueError("vectors holds NaN or infinity; queries are finite numbers. Impute or drop those rows.")
    return rows


def are_orthonormal(components: np.ndarray) -> bool:
    """Return whether the rows have length one and are perpendicular, up to rounding."""
    return bool(np.all(np.abs(components @ components.T - np.eye(len(components))) <= _ORTHONORMAL))


def class_fields(codes: BinaryCodes, n_class_bits: int) -> np.ndarray:
    """Return the number in the first bits of each code, lowest bit first."""
    bits = np.unpackbits(codes.packed, axis=1, bitorder="little", count=n_class_bits)
    return bits.astype(np.int64) @ (1 << np.arange(n_class_bits))


@dataclass(frozen=True, eq=False)
class ResidualItems(WrappedItems):
    r"""Codes, and the squared norms of the vectors they stand for, by ascending id.

    With the mean of the centers as the origin, the distance of a query q from an item is

    .. math:: |q - \hat x|^2 = |q|^2 - 2 \langle q, \mu_c\rangle - 2 \sum_j b_j s_j \langle q, w_j\rangle + |\hat x|^2.

    The first two terms depend on the class alone. The sum is one of table entries, one per byte of the code.
    """

    rule: FloatRule = field(kw_only=True)
    reconstruction: Reconstruction = field(kw_only=True)
    norm_buffer: np.ndarray = field(kw_only=True)

    @classmethod
    def empty_with(cls, n_bits: int, rule: FloatRule, reconstruction: Reconstruction) -> Self:
        """Return no items, to be ordered by this rule and to stand for these vectors."""
        norms = np.empty(0, np.float32)
        return cls(RunItems.empty(n_bits), rule=rule, reconstruction=reconstruction, norm_buffer=norms)

    def arrays(self) -> dict[str, np.ndarray]:
        rule = np.array([self.rule.class_weight, self.rule.class_first, self.reconstruction.unit])
        parts = {name: getattr(self.reconstruction, name) for name in ("centers", "components", "scales")}
        return super().arrays() | parts | {"rule": rule}

    def filled(self, plain: PlaneItems) -> Self:
        """Return items with these codes and ids."""
        return replace(self, plain=plain, norm_buffer=self._norms(plain.planes, plain.n_items))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.norm_buffer.nbytes

    def inserted(self, planes: np.ndarray, ids: np.ndarray) -> Self:
        larger, added = super().inserted(planes, ids), self._norms(planes, len(ids))
        n_old, n_new, last = self.n_items, larger.n_items, self.last_id
        if last is not None and ids[0] < last:
            positions = np.searchsorted(self.ids, ids)
            return replace(larger, norm_buffer=np.insert(self.norm_buffer[:n_old], positions, added))
        norms = self.norm_buffer
        if len(norms) < n_new:
            norms = np.empty(larger.planes.shape[1], np.float32)
            norms[:n_old] = self.norm_buffer[:n_old]
        norms[n_old:n_new] = added
        return replace(larger, norm_buffer=norms)

    def selected(self, mask: np.ndarray) -> Self:
        return replace(super().selected(mask), norm_buffer=self.norm_buffer[: self.n_items][mask])

    def nearest_to(
        self, queries: VectorQueries, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and distances, both of shape (n_queries, k); at least k positions pass the mask."""
        found = self._candidates(queries, k, np.full((len(queries), 2), np.inf), mask, n_jobs)
        return self.rule.nearest(found, len(queries), k)

    def within_of(self, queries: VectorQueries, radius: float, mask: np.ndarray | None, n_jobs: int | None) -> Hits:
        """Return all items within the radius of each query, by distance and then by id."""
        n_queries = len(queries)
        thresholds = np.full(n_queries, -1.0)
        if self.rule.class_first:
            found = self._candidates(queries, 1, np.full((n_queries, 2), np.inf), mask, n_jobs)
            thresholds = self.rule.thresholds(found, n_queries)
        limits = np.nextafter([radius, radius - self.rule.class_weight], np.inf)
        found = self._candidates(queries, 0, np.tile(limits, (n_queries, 1)), mask, n_jobs)
        starts, positions, distances = self.rule.ordered(found, n_queries, thresholds)
        inside = distances <= radius
        starts = np.concatenate([[0], np.cumsum(inside)])[starts]
        return starts.astype(np.int64), positions[inside], distances[inside]

    def candidates_near(
        self, queries: VectorQueries, k: int, mask: np.ndarray | None, n_jobs: int | None
    ) -> Candidates:
        """Return what can be among the k nearest, however near items of the query's class are elsewhere."""
        # Such a weight keeps the items of the class from ruling out others.
        return self._candidates(queries, k, np.full((len(queries), 2), np.inf), mask, n_jobs, weight=-_BEYOND)

    def candidates_within(
        self, queries: VectorQueries, radius: float, mask: np.ndarray | None, n_jobs: int | None
    ) -> Candidates:
        """Return what can be within the radius, however near items of the query's class are elsewhere."""
        limits = np.nextafter([radius, radius - self.rule.class_weight], np.inf)
        return self._candidates(queries, 0, np.tile(limits, (len(queries), 1)), mask, n_jobs)

    def _candidates(
        self,
        queries: VectorQueries,
        k: int,
        limits: np.ndarray,
        mask: np.ndarray | None,
        n_jobs: int | None,
        weight: float | None = None,
    ) -> Candidates:
        passing = np.empty(0, np.bool_) if mask is None else mask
        weight = float(self.rule.class_weight) if weight is None else weight
        rule = (k, weight, self.rule.class_first if k else 0)
        field = self.planes.dtype.type((1 << self.rule.class_bits) - 1)

        def scan(piece: slice, some: slice) -> tuple[np.ndarray, np.ndarray]:
            heads, tables, owns = self._tables(queries[some])
            hits, distances = loops.candidates(
                *(self.planes, piece.start, piece.stop, self.norm_buffer, heads, tables, field, owns),
                *(rule, limits[some], passing),
            )
            hits[:, 0] += some.start
            return hits, distances

        with single_threaded_blas():
            parts = run_all((partial(scan, *task) for task in scan_tasks(self.n_items, len(queries))), n_jobs)
        hits, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Candidates(hits[:, 0], hits[:, 1], distances, hits[:, 2])

    def _tables(self, queries: VectorQueries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what each class adds to the distance of each query, what each byte adds, and the query's class."""
        centers, components = self.reconstruction.centers, self.reconstruction.components
        scales, unit = self.reconstruction.scales, self.reconstruction.unit
        origin = centers.mean(axis=0)
        vectors = queries.vectors.astype(np.float64) - origin
        norms = np.einsum("qd,qd->q", vectors, vectors)
        heads = norms[:, None] - 2.0 * (vectors @ (centers - origin).T)
        n_bytes = 4 * -(-self.planes.dtype.itemsize // 4) * len(self.planes)  # the loops read four at a time
        parts = np.zeros((len(queries), 8 * n_bytes))
        parts[:, self.rule.class_bits : self.n_bits] = -2.0 * scales * (vectors @ components.T)
        tables = parts.reshape(len(queries), n_bytes, 8) @ _BYTE_SIGNS.T
        owns = class_fields(queries.codes, self.rule.class_bits).astype(self.planes.dtype)
        return (heads / unit).astype(np.float32), (tables / unit).astype(np.float32), owns

    def _norms(self, planes: np.ndarray, n_rows: int) -> np.ndarray:
        scales, unit = self.reconstruction.scales, self.reconstruction.unit
        centers = self.reconstruction.centers - self.reconstruction.centers.mean(axis=0)
        with single_threaded_blas():
            products = (centers @ self.reconstruction.components.T) * scales / unit
        norms, constant = np.einsum("cd,cd->c", centers, centers) / unit, float(np.sum(scales**2)) / unit
        return loops.squared_reconstruction_norms(planes, n_rows, self.rule.class_bits, norms, products, constant)


class ResidualIndex(MemoryIndex):
    """Search items by the vectors that their codes stand for.

    The distance is the squared distance between the query's vector and an item's reconstructed one, divided by the unit
    of the reconstruction, plus ``class_weight`` if the class fields differ. With ``class_first``, items of other
    classes are also farther away than this many items of the query's class, by a thousandth: these come first, and the
    others follow in their order. Distances are floats. They are sums of single-precision numbers, and equal codes have
    equal ones.

    Queries are :class:`VectorQueries`, as ``hasher.encode_queries`` makes them. A query that is a code stands for its
    own reconstructed vector.

    Parameters
    ----------
    n_bits : int
        Length of the codes, both fields together.
    reconstruction : Reconstruction
        What codes stand for. The bits that it does not use, at the beginning of a code, are the class.
    class_weight : float, default=0
        What another class adds to the distance.
    class_first : int, default=0
        How many items of the query's class come before those of all other classes.
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl import BinaryCodes
    >>> from starshl.index import Reconstruction, ResidualIndex, VectorQueries
    >>> centers = np.array([[0.0, 0.0], [8.0, 0.0]])  # two classes, then one bit: up or down by 1
    >>> index = ResidualIndex(2, Reconstruction(centers, components=[[0.0, 1.0]], scales=[1.0], unit=1.0))
    >>> codes = BinaryCodes.from_signs(np.array([[-1, 1], [-1, -1], [1, 1]]))
    >>> index.reconstruction.vectors(codes).tolist()
    [[0.0, 1.0], [0.0, -1.0], [8.0, 1.0]]
    >>> index.add(codes).tolist()
    [0, 1, 2]
    >>> distances, ids = index.search(VectorQueries(codes[:1], [[5.0, 0.5]]), k=3)
    >>> distances.tolist(), ids.tolist()
    ([[9.25, 25.25, 27.25]], [[2, 0, 1]])
    """

    kind = "residual"
    metric = "hybrid"
    items_type = ResidualItems
    supports = MemoryIndex.supports - {"scores"}
    distance_type = np.float64
    _items: ResidualItems

    def __init__(
        self,
        n_bits: int,
        reconstruction: Reconstruction,
        *,
        class_weight: float = 0.0,
        class_first: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        n_bits = check_integer(n_bits, "n_bits", low=1)
        n_class_bits = n_bits - reconstruction.n_neighbor_bits
        if not 1 <= n_class_bits <= MAX_CLASS_BITS or len(reconstruction.centers) > 1 << n_class_bits:
            raise ValueError(
                f"n_bits is {n_bits}; the reconstruction has {reconstruction.n_neighbor_bits} neighbor bits and "
                f"{len(reconstruction.centers)} classes. Give as many bits as both fields have, at most "
                f"{MAX_CLASS_BITS} of them for the class."
            )
        self.reconstruction = reconstruction
        self.class_bits = n_class_bits
        self.class_weight = check_number(class_weight, "class_weight", low=0)
        self.class_first = check_integer(class_first, "class_first", low=0)
        rule = FloatRule(n_class_bits, self.class_weight, self.class_first)
        self._set_up(n_bits, ResidualItems.empty_with(n_bits, rule, reconstruction), n_jobs)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        check_names(arrays, ("centers", "components", "ids", "planes", "rule", "scales"))
        rule = arrays["rule"]
        if rule.dtype != np.float64 or rule.shape != (3,) or not 0 <= rule[1] <= 2**53:
            raise ValueError(f"its rule is {rule.dtype} of shape {rule.shape}")
        reconstruction = Reconstruction(arrays["centers"], arrays["components"], arrays["scales"], rule[2])
        index = cls(n_bits, reconstruction, class_weight=rule[0], class_first=int(rule[1]), n_jobs=n_jobs)
        plain = RunItems.from_arrays(n_bits, {name: arrays[name] for name in ("ids", "planes")})
        fields = plain.planes[0] & plain.planes.dtype.type((1 << index.class_bits) - 1)
        if np.any(fields >= len(reconstruction.centers)):
            raise ValueError("some of its codes have a class without a center")
        index._items = index._items.filled(plain)
        return index

    def search(
        self,
        codes: BinaryCodes | VectorQueries,
        k: int = 10,
        *,
        among: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        scores: ArrayLike | None = None,
    ) -> Neighbors:
        """Return the k nearest items of each query, by distance and then by id; filters are those of other indexes."""
        queries, k = self._queries(codes), check_integer(k, "k", low=1)
        among = self._check_filters(among, where)
        if scores is not None:
            self._require("scores")
        items = self._items
        mask, k = passing_items(items, among, k)
        if k == 0 or not len(queries):
            return Neighbors(np.empty((len(queries), k)), np.empty((len(queries), k), np.int64))
        positions, distances = items.nearest_to(queries, k, mask, self.n_jobs)
        return Neighbors(distances, items.ids_at(positions))

    def search_radius(
        self,
        codes: BinaryCodes | VectorQueries,
        radius: float,
        *,
        among: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> RadiusNeighbors:
        """Return all items within ``radius`` (inclusive) of each query; filters are those of other indexes."""
        queries, radius = self._queries(codes), check_number(radius, "radius", low=0)
        items = self._items
        mask, _ = passing_items(items, self._check_filters(among, where), 1)
        starts, positions, distances = items.within_of(queries, radius, mask, self.n_jobs)
        return RadiusNeighbors(starts, distances, items.ids_at(positions))

    @property
    def class_rule(self) -> FloatRule:
        return self._items.rule

    def candidates(self, codes: BinaryCodes | VectorQueries, k: int, among: np.ndarray | None) -> Candidates:
        items, queries = self._items, self._queries(codes)
        return items.by_id(items.candidates_near(queries, k, passing_items(items, among, 1)[0], self.n_jobs))

    def candidates_within(
        self, codes: BinaryCodes | VectorQueries, radius: float, among: np.ndarray | None
    ) -> Candidates:
        items, queries, radius = self._items, self._queries(codes), check_number(radius, "radius", low=0)
        return items.by_id(items.candidates_within(queries, radius, passing_items(items, among, 1)[0], self.n_jobs))

    def _queries(self, codes: BinaryCodes | VectorQueries) -> VectorQueries:
        if not isinstance(codes, VectorQueries):
            codes = VectorQueries(self.check_codes(codes), self.reconstruction.vectors(self.check_codes(codes)))
        self._check_space(self.check_codes(codes.codes))
        n_features = self.reconstruction.centers.shape[1]
        if codes.vectors.shape[1] != n_features:
            raise ValueError(
                f"The vectors of the queries have {codes.vectors.shape[1]} numbers; those of this index have "
                f"{n_features}. Make queries with the hasher that made the index."
            )
        return codes

    def check_codes(self, codes: BinaryCodes) -> BinaryCodes:
        fields, n_classes = class_fields(super().check_codes(codes), self.class_bits), len(self.reconstruction.centers)
        if np.any(fields >= n_classes):
            raise ValueError(
                f"A code has the class {fields.max()}; this index knows classes 0 to {n_classes - 1}. "
                "Encode with the hasher that made the index."
            )
        return codes
