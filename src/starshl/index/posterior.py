"""PosteriorIndex: codes that stand for class posteriors, in the order of how likely they are of a query's class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.threads import run_all, tiles
from .._common.validation import check_integer
from ..codes.binary import BinaryCodes
from ..codes.hamming import few_pass
from ..codes.hamming_words import HammingWords
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import Words
from . import _run_loops as loops
from .base import Neighbors, RadiusNeighbors, Wanted
from .items import check_names
from .memory import MemoryIndex, passing_items, positions_of
from .word_items import CodewordTable, WordItems, WordTable

_EVERY_ITEM = np.empty(0, np.bool_)
# A task is at least this many queries, and more where items are few.
_QUERIES_PER_TASK, _ITEMS_PER_TASK = 32, 1 << 22
_MOST_WORD_BITS = 1 << 14


class SearchLoops(NamedTuple):
    """The compiled searches of an index, which take the same arguments besides k and a radius.

    ``nearest`` returns scores and ids of the k best items of each query, in any order; ``within`` query numbers, scores
    and ids of all items up to a score.
    """

    nearest: Callable[..., tuple[np.ndarray, np.ndarray]]
    within: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]


class WordIndex(MemoryIndex):
    """Codes that begin with a word for a class posterior, ordered by score and id; what all such indexes share.

    Queries are :class:`starshl.codes.EncodedQueries`, as ``hasher.encode_queries`` makes them. A query that is only a
    code has the posterior that its word stands for.
    """

    supports = frozenset({"mask", "probability", "reconstruct", "remove", "save", "threads"})
    distance_type = np.float64
    #: Whether codes have more bits than words.
    keeps_codes: ClassVar[bool] = False
    words: Words
    table: WordTable
    rule: ScoreRule
    loops: ClassVar[SearchLoops]
    _items: WordItems

    def _set_up_words(self, n_bits: int, table: WordTable, rule: ScoreRule, n_jobs: int | None) -> None:
        n_bits, words = check_integer(n_bits, "n_bits", low=1), table.words
        if not words.n_bits <= min(n_bits, _MOST_WORD_BITS):
            raise ValueError(
                f"n_bits is {n_bits}, and the words have {words.n_bits}; codes begin with words of at most "
                f"{_MOST_WORD_BITS} bits. Take both from one hasher."
            )
        self.words, self.table, self.rule = words, table, rule
        self._set_up(n_bits, WordItems.empty_with(n_bits, table, self.keeps_codes), n_jobs)

    def _search(self, queries: EncodedQueries, k: int, wanted: Wanted) -> Neighbors:
        items = self._items
        mask, k = passing_items(items, wanted.among, k)
        if k == 0 or not len(queries):
            return Neighbors(np.empty((len(queries), k)), np.empty((len(queries), k), np.int64))
        items, mask = _narrowed(items, mask, len(queries))
        parts = self._found(self.loops.nearest, items, queries, wanted.min_probability, k, mask)
        distances, ids = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((ids, distances), axis=1)
        distances, ids = np.take_along_axis(distances, order, axis=1), np.take_along_axis(ids, order, axis=1)
        return Neighbors(distances, np.where(np.isinf(distances), -1, ids))

    def _search_radius(self, queries: EncodedQueries, radius: float, wanted: Wanted) -> RadiusNeighbors:
        items = self._items
        mask, _ = passing_items(items, wanted.among, 1)
        items, mask = _narrowed(items, mask, len(queries))
        parts = self._found(self.loops.within, items, queries, wanted.min_probability, radius, mask)
        starts, distances, ids = [np.zeros(1, np.int64)], [np.empty(0)], [np.empty(0, np.int64)]
        for some, (numbers, scores, found) in zip(_pieces(items, queries), parts, strict=True):
            order = np.lexsort((found, scores, numbers))
            starts.append(np.bincount(numbers, minlength=some.stop - some.start))
            distances.append(scores[order])
            ids.append(found[order])
        return RadiusNeighbors(np.cumsum(np.concatenate(starts)), np.concatenate(distances), np.concatenate(ids))

    def probabilities(self, queries: BinaryCodes | EncodedQueries, ids: ArrayLike) -> np.ndarray:
        asked, items, wanted = self._asked(queries), self._items, np.asarray(ids)
        if wanted.ndim != 2 or len(wanted) != len(asked) or wanted.dtype.kind not in "iu":
            raise ValueError(
                f"ids has dtype {wanted.dtype} and shape {wanted.shape}; it must hold the ids of hits, one row per "
                f"query ({len(asked)})."
            )
        flat = wanted.astype(np.int64).ravel()
        different, places = np.unique(flat, return_inverse=True)
        positions = items.find(different)
        if np.any((positions < 0) & (different != -1)):
            positions_of(items, different[different != -1])  # says which one is unknown
        assert asked.posteriors is not None
        runs, is_known = items.runs_at(positions), positions >= 0
        probabilities = np.zeros(wanted.shape)
        for q, own in enumerate(places.reshape(wanted.shape)):
            known = is_known[own]
            probabilities[q, known] = items.probabilities(asked.posteriors[q], runs[own[known]])
        return probabilities

    def queries_of(self, ids: ArrayLike) -> EncodedQueries:
        codes = self.reconstruct(ids)
        return EncodedQueries(codes, self.words.posteriors_of(codes))

    def _reconstruct(self, ids: np.ndarray) -> BinaryCodes:
        items = self._items
        return items.codes_at(positions_of(items, ids))

    def _asked(self, queries: BinaryCodes | EncodedQueries) -> EncodedQueries:
        """Return checked queries with their posteriors."""
        asked = super()._asked(queries)
        if asked.posteriors is None:
            asked = replace(asked, posteriors=self.words.posteriors_of(asked.codes))
        assert asked.posteriors is not None
        if asked.posteriors.shape[1] != self.words.n_classes:
            raise ValueError(
                f"The posteriors of the queries are over {asked.posteriors.shape[1]} classes; those of this index are "
                f"over {self.words.n_classes}. Make queries with the hasher that made the index."
            )
        own = self.words.numbers if isinstance(self.words, HammingWords) else None
        if own is not None and asked.numbers is not None and not np.array_equal(own, asked.numbers):
            raise ValueError(
                "The posteriors of the queries are over other classes of the codebook than those of this index. Make "
                "queries with the hasher that made the index."
            )
        return asked

    def _found(
        self, loop: Any, items: WordItems, asked: EncodedQueries, least: float, limit: float, mask: np.ndarray
    ) -> list[Any]:
        """Return what a loop finds for each piece of the queries."""

        def find(some: slice) -> Any:
            return loop(*self._arguments(items, asked[some], least), limit, mask)

        return run_all([partial(find, some) for some in _pieces(items, asked)], self.n_jobs)

    @abstractmethod
    def _arguments(self, items: WordItems, asked: EncodedQueries, least: float) -> tuple[object, ...]:
        """Return what both loops take, besides k or a radius, and a mask."""

    @abstractmethod
    def _arrays_of_rule(self) -> dict[str, np.ndarray]:
        """Return the words, and what else a file holds besides items."""

    def _stored_arrays(self) -> dict[str, np.ndarray]:
        return self._items.arrays() | self._arrays_of_rule()

    def _with_items(self, arrays: dict[str, np.ndarray]) -> Self:
        """Return this index with the items of a file whose other arrays it has been made of."""
        known = ("ids", "starts", "classes", "words", *self._arrays_of_rule())
        check_names(arrays, (*known, "planes") if self.keeps_codes else known)
        self._items = self._items.with_arrays(arrays)
        return self


def _narrowed(items: WordItems, mask: np.ndarray | None, n_queries: int) -> tuple[WordItems, np.ndarray]:
    """Return the items to search, and which of them may be returned: all of them, if few pass."""
    if mask is None:
        return items, _EVERY_ITEM
    return (items.selected(mask), _EVERY_ITEM) if few_pass(mask, n_queries) else (items, mask)


def _pieces(items: WordItems, asked: EncodedQueries) -> list[slice]:
    return tiles(len(asked), max(_QUERIES_PER_TASK, _ITEMS_PER_TASK // max(len(items), 1)))


class PosteriorIndex(WordIndex):
    """Search items by how likely they are of the class of a query.

    A code stands for a class posterior, and so does a query: that they are of the same class has the probability
    :math:`P = \\sum_g p_g h_g`, where h is the posterior of the item, certain if its code follows from a label. The
    distance is :math:`-\\log \\max(P, 10^{-6})`.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    words : HammingWords
        What codes stand for: ``hasher.words``.
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.codes import BinaryCodes, EncodedQueries, HammingWords
    >>> from starshl.index import PosteriorIndex
    >>> words = HammingWords(np.array([[1, 1, 1], [-1, -1, -1]]), sharpness=1.0)
    >>> index = PosteriorIndex(3, words)
    >>> codes = BinaryCodes.from_signs([[-1, -1, -1], [1, 1, 1], [1, 1, -1]])
    >>> index.add(codes).tolist()
    [0, 1, 2]
    >>> queries = EncodedQueries(codes[2], posteriors=[[0.75, 0.25]])
    >>> distances, ids = index.search(queries, k=3)
    >>> ids.tolist(), index.probabilities(queries, ids).round(2).tolist()
    ([[1, 2, 0]], [[0.73, 0.62, 0.27]])
    >>> index.search(queries, k=3, min_probability=0.5).ids.tolist()
    [[1, 2, -1]]
    """

    kind = "posterior"
    loops = SearchLoops(loops.nearest_by_word, loops.within_by_word)
    words: HammingWords
    table: CodewordTable

    def __init__(self, n_bits: int, words: HammingWords, *, n_jobs: int | None = None) -> None:
        if not isinstance(words, HammingWords):
            raise TypeError(f"words is a {type(words).__name__}; it must be HammingWords. Take hasher.words.")
        self._set_up_words(n_bits, CodewordTable(words), ScoreRule(1.0, 1.0, 0.0), n_jobs)
        if words.n_bits != n_bits:
            raise ValueError(
                f"n_bits is {n_bits}, and the words have {words.n_bits} bits; here a code is a word. Take both from "
                "one hasher."
            )

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        return cls(n_bits, _words_of(arrays), n_jobs=n_jobs)._with_items(arrays)

    def _arrays_of_rule(self) -> dict[str, np.ndarray]:
        words, codewords = self.words, BinaryCodes.from_signs(self.words.codewords).packed
        n_bits, sharpness = np.array([words.n_bits]), np.array([words.sharpness])
        held = {"codewords": codewords, "codeword_bits": n_bits, "sharpness": sharpness}
        return held if words.numbers is None else held | {"class_numbers": np.asarray(words.numbers, np.int64)}

    def _arguments(self, items: WordItems, asked: EncodedQueries, least: float) -> tuple[object, ...]:
        decoder = self.table.codewords, self.table.decay
        return items.id_buffer, items.starts, items.run_planes, items.run_parts, (1.0, least), decoder, asked.posteriors


def _words_of(arrays: dict[str, np.ndarray]) -> HammingWords:
    """Return the words of an index file; raise ValueError for arrays that a search cannot trust."""
    n_bits, sharpness = number_of(arrays, "codeword_bits", np.int64), number_of(arrays, "sharpness", np.float64)
    if not 1 <= n_bits <= _MOST_WORD_BITS or not 0 <= sharpness < np.inf:
        raise ValueError(f"its codewords have {n_bits} bits, their sharpness is {sharpness}")
    if not len(arrays.get("codewords", ())):
        raise ValueError("it has no codewords")
    codewords, numbers = BinaryCodes(arrays["codewords"], int(n_bits)), arrays.get("class_numbers")
    if numbers is not None and (
        numbers.dtype != np.int64
        or numbers.shape != (len(codewords),)
        or len(np.unique(numbers)) < len(numbers)
        or np.any(numbers < 0)
    ):
        raise ValueError("its numbers of classes are not different positions")
    return HammingWords(codewords.to_signs(), float(sharpness), numbers)


def number_of(arrays: dict[str, np.ndarray], name: str, dtype: type) -> Any:
    """Return a number of an index file."""
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.shape != (1,):
        raise ValueError(f"it has no number {name!r}")
    return array[0]
