"""ResidualIndex: codes that stand for vectors, searched by the probability of the class and a query's own vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import single_threaded_blas
from ..codes.binary import BinaryCodes
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from . import _run_loops as loops
from .hybrid import HybridIndex, words_and_rule
from .posterior import SearchLoops
from .word_items import ItemTerms, WordItems

# Directions of single-precision rows are orthonormal up to a few millionths.
_ORTHONORMAL = 1e-3
_PARTS = ("centers", "components", "scales")


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    r"""What turns codes of a word and neighbor bits back into vectors.

    A code whose word stands for the posterior h, with neighbor bits b, which are -1 and +1, stands for

    .. math:: \hat x = \sum_g h_g \mu_g + W^\top (s \circ b).

    Parameters
    ----------
    centers : array of shape (n_classes, n_features)
        The vectors :math:`\mu_g`.
    components : array of shape (n_neighbor_bits, n_features)
        The orthonormal rows of W.
    scales : array of shape (n_neighbor_bits,)
        The mean distance s of a vector from its center in each direction.
    """

    centers: np.ndarray
    components: np.ndarray
    scales: np.ndarray

    def __post_init__(self) -> None:
        for name in ("centers", "components", "scales"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        centers, components, scales = self.centers, self.components, self.scales
        if centers.ndim != 2 or not len(centers) or components.ndim != 2 or components.shape[1] != centers.shape[1]:
            raise ValueError(
                f"centers has shape {centers.shape} and components {components.shape}; they must be (n_classes, "
                "n_features) and (n_neighbor_bits, n_features)."
            )
        if scales.shape != (len(components),):
            raise ValueError(f"scales has shape {scales.shape}; there are {len(components)} components.")
        with np.errstate(over="ignore"):
            if not all(np.isfinite(np.sum(array**2)) for array in (centers, components, scales)):
                raise ValueError("Some numbers of the reconstruction are not finite, or too large for their squares.")
        if not are_orthonormal(components):
            raise ValueError("The components are not orthonormal. Use directions such as those of ITQ.")

    @property
    def n_neighbor_bits(self) -> int:
        return len(self.components)

    def vectors(self, codes: BinaryCodes, words: WordDictionary) -> np.ndarray:
        """Return the vectors that codes stand for, (n_codes, n_features)."""
        signs = codes.to_signs()[:, codes.n_bits - self.n_neighbor_bits :]
        return words.posteriors_of(codes) @ self.centers + (signs * self.scales) @ self.components


def are_orthonormal(components: np.ndarray) -> bool:
    """Return whether the rows have length one and are perpendicular, up to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.all(np.abs(components @ components.T - np.eye(len(components))) <= _ORTHONORMAL))


class ResidualIndex(HybridIndex):
    r"""Search items by the vectors that their codes stand for.

    The score of an item is s(d) - w u log max(P, 1e-6), as in :class:`starshl.index.HybridIndex`, with the squared
    distance :math:`d = |q - \hat x|^2` between the query's vector and the one that the item's code stands for, see
    :class:`starshl.index.Reconstruction`. Distances are sums of single-precision numbers, and equal codes have equal
    ones.

    Queries are :class:`starshl.codes.EncodedQueries` with vectors, as ``hasher.encode_queries`` makes them. A query
    without one has the vector that its code stands for.

    Parameters
    ----------
    n_bits : int
        Length of the codes, both parts together.
    words : WordDictionary
        What the first bits of a code stand for: ``hasher.words``.
    rule : ScoreRule
        What distance and probability make together; its unit and saturation are squared distances.
    reconstruction : Reconstruction
        What codes stand for, for as many neighbor bits as the words leave.
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.codes import BinaryCodes, EncodedQueries, ScoreRule, WordDictionary
    >>> from starshl.index import Reconstruction, ResidualIndex
    >>> words = WordDictionary(np.eye(2), n_bits=1)  # two classes, then one bit: up or down by 1
    >>> vectors = Reconstruction([[0.0, 0.0], [8.0, 0.0]], components=[[0.0, 1.0]], scales=[1.0])
    >>> index = ResidualIndex(2, words, ScoreRule(0, 1, 30), vectors)
    >>> codes = BinaryCodes.from_signs(np.array([[-1, 1], [-1, -1], [1, 1]]))
    >>> vectors.vectors(codes, words).tolist()
    [[0.0, 1.0], [0.0, -1.0], [8.0, 1.0]]
    >>> index.add(codes).tolist()
    [0, 1, 2]
    >>> distances, ids = index.search(EncodedQueries(codes[:1], vectors=[[5.0, 0.5]]), k=3)
    >>> distances.tolist(), ids.tolist()
    ([[9.25, 25.25, 27.25]], [[2, 0, 1]])
    """

    kind = "residual"
    loops = SearchLoops(loops.nearest_by_vector, loops.within_by_vector)

    def __init__(
        self,
        n_bits: int,
        words: WordDictionary,
        rule: ScoreRule,
        reconstruction: Reconstruction,
        *,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_bits, words, rule, n_jobs=n_jobs)
        if len(reconstruction.centers) != words.n_classes or reconstruction.n_neighbor_bits + words.n_bits != n_bits:
            raise ValueError(
                f"The reconstruction has {len(reconstruction.centers)} centers and {reconstruction.n_neighbor_bits} "
                f"neighbor bits; with {words.n_classes} classes, and words of {words.n_bits} of {n_bits} bits, it must "
                f"have {words.n_classes} and {n_bits - words.n_bits}. Take all from one hasher."
            )
        self.reconstruction = reconstruction
        self._origin = reconstruction.centers.mean(axis=0)
        terms = _terms_of(words, reconstruction, self._origin)
        self._items = replace(self._items, terms=terms)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        if not set(_PARTS) <= set(arrays):
            raise ValueError(f"it holds the arrays {sorted(arrays)}")
        reconstruction = Reconstruction(*(arrays[name] for name in _PARTS))
        return cls(n_bits, *words_and_rule(arrays), reconstruction, n_jobs=n_jobs)._with_items(arrays)

    def _arrays_of_rule(self) -> dict[str, np.ndarray]:
        return super()._arrays_of_rule() | {name: getattr(self.reconstruction, name) for name in _PARTS}

    def queries_of(self, ids: ArrayLike) -> EncodedQueries:
        queries = super().queries_of(ids)
        return replace(queries, vectors=self._vectors_of(queries.codes))

    def _asked(self, queries: BinaryCodes | EncodedQueries) -> EncodedQueries:
        asked = super()._asked(queries)
        if asked.vectors is None:
            return replace(asked, vectors=self._vectors_of(asked.codes))
        n_features = self.reconstruction.centers.shape[1]
        if asked.vectors.shape[1] != n_features:
            raise ValueError(
                f"The vectors of the queries have {asked.vectors.shape[1]} numbers; those of this index have "
                f"{n_features}. Make queries with the hasher that made the index."
            )
        return asked

    def _vectors_of(self, codes: BinaryCodes) -> np.ndarray:
        """Return the vectors that queries stand for, one by one, so that a batch changes no bit of them."""
        with single_threaded_blas():
            vectors = [self.reconstruction.vectors(code, self.words) for code in codes]
        return np.concatenate([np.empty((0, self.reconstruction.centers.shape[1])), *vectors])

    def _arguments(self, items: WordItems, asked: EncodedQueries, least: float) -> tuple[object, ...]:
        terms, scales = items.terms, self.reconstruction.scales
        assert terms is not None
        assert asked.vectors is not None
        heads = np.empty((len(asked), 1 + self.words.n_classes))
        parts = np.zeros((len(asked), 8 * self._n_table_bytes(items)))
        centers = self.reconstruction.centers - self._origin
        with single_threaded_blas():
            # One product for each query, so that a batch changes no bit of it.
            for q, vector in enumerate(asked.vectors):
                centered = np.asarray(vector, np.float64) - self._origin
                heads[q, 0], heads[q, 1:] = centered @ centered, centers @ centered
                parts[q, self.words.n_bits : self.n_bits] = -2.0 * scales * (self.reconstruction.components @ centered)
        tables = loops.byte_tables(parts / terms.step)
        return (
            *(items.planes, items.id_buffer, items.starts, *items.run_parts, items.term_buffer),
            *(self._loop_rule(least), self.table.entries, self.words.entries.astype(np.float32, copy=False)),
            *(asked.posteriors, heads / terms.step, tables, (terms.step, self.rule.saturation)),
        )

    @staticmethod
    def _n_table_bytes(items: WordItems) -> int:
        return 4 * -(-items.planes.dtype.itemsize // 4) * len(items.planes)  # the loops read four at a time


def _terms_of(words: WordDictionary, reconstruction: Reconstruction, origin: np.ndarray) -> ItemTerms:
    """Return what makes the squared norm of an item's vector around an origin."""
    with single_threaded_blas():
        centers = words.entries @ (reconstruction.centers - origin)
        products = (centers @ reconstruction.components.T) * reconstruction.scales
    norms, constant = np.einsum("wd,wd->w", centers, centers), float(np.sum(reconstruction.scales**2))
    # Single precision ends at 3e38, so that squares are counted in larger steps where vectors are large; powers of two
    # round nothing.
    step = 2.0 ** np.ceil(np.log2(max(1.0, float(np.max(norms, initial=0.0)), constant)))
    return ItemTerms(words.n_bits, norms / step, products / step, constant / step, float(step))
