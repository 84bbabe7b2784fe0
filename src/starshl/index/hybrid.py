"""HybridIndex: codes of a word for the class and neighbor bits, searched by both at once."""

from __future__ import annotations

from dataclasses import astuple
from typing import Self

import numpy as np

from ..codes.hamming import to_planes
from ..codes.queries import EncodedQueries
from ..codes.score_rule import ScoreRule
from ..codes.word_dictionary import WordDictionary
from . import _run_loops as loops
from .posterior import SearchLoops, WordIndex, number_of
from .word_items import EntryTable, WordItems

#: A word lies in the first bits of a code, and a dictionary has an entry for each number in them.
MAX_CLASS_BITS = 16


def _checked(words: WordDictionary) -> WordDictionary:
    """Return the words of hybrid codes, or raise if they are something else."""
    if not isinstance(words, WordDictionary):
        raise TypeError(
            f"words is a {type(words).__name__}; hybrid codes begin with the number of an entry of a WordDictionary. "
            "Take hasher.words of a HybridHasher."
        )
    if words.n_bits > MAX_CLASS_BITS:
        raise ValueError(
            f"words has numbers of {words.n_bits} bits; hybrid codes have room for {MAX_CLASS_BITS}. Learn a smaller "
            "dictionary."
        )
    return words


class HybridIndex(WordIndex):
    """Search codes of a word for the class and neighbor bits.

    The score of an item is s(d) - w u log max(P, 1e-6): d is the number of neighbor bits in which the codes differ, and
    P the probability that item and query are of the same class; see :class:`starshl.codes.ScoreRule`.

    Parameters
    ----------
    n_bits : int
        Length of the codes, both parts together.
    words : WordDictionary
        What the first bits of a code stand for: ``hasher.words``.
    rule : ScoreRule
        What distance and probability make together.
    n_jobs : int, default=None
        Threads of a search; None means one. Results are the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from starshl.codes import BinaryCodes, EncodedQueries, ScoreRule, WordDictionary
    >>> from starshl.index import HybridIndex
    >>> words = WordDictionary(np.array([[1, 0], [0, 1], [0.5, 0.5]]), n_bits=2)
    >>> index = HybridIndex(4, words, ScoreRule(class_weight=1, unit=2, saturation=2))
    >>> codes = BinaryCodes.from_signs([[-1, -1, 1, 1], [1, -1, -1, -1], [-1, 1, 1, 1]])  # the words 0, 1, 2
    >>> index.add(codes).tolist()
    [0, 1, 2]
    >>> queries = EncodedQueries(codes[1], posteriors=[[0.1, 0.9]])
    >>> distances, ids = index.search(queries, k=3)
    >>> distances.round(2).tolist(), ids.tolist()
    ([[0.21, 3.39, 6.61]], [[1, 2, 0]])
    """

    kind = "hybrid"
    metric = "hybrid"
    keeps_codes = True
    loops = SearchLoops(loops.nearest_by_bits, loops.within_by_bits)
    words: WordDictionary
    table: EntryTable

    def __init__(self, n_bits: int, words: WordDictionary, rule: ScoreRule, *, n_jobs: int | None = None) -> None:
        self._set_up_words(n_bits, EntryTable(_checked(words)), rule, n_jobs)

    @classmethod
    def from_arrays(cls, n_bits: int, arrays: dict[str, np.ndarray], *, n_jobs: int | None = None) -> Self:
        return cls(n_bits, *words_and_rule(arrays), n_jobs=n_jobs)._with_items(arrays)

    def _arrays_of_rule(self) -> dict[str, np.ndarray]:
        entries, n_bits = self.words.entries.astype(np.float32), np.array([self.words.n_bits])
        return {"entries": entries, "entry_bits": n_bits, "rule": np.array(astuple(self.rule))}

    def _loop_rule(self, least: float) -> tuple[float, float, int]:
        return self.rule.class_weight * self.rule.unit, least, self.table.n_labels

    def _arguments(self, items: WordItems, asked: EncodedQueries, least: float) -> tuple[object, ...]:
        field = items.planes.dtype.type((1 << self.words.n_bits) - 1)
        queries = np.ascontiguousarray(to_planes(asked.codes).T)
        saturated = self.rule.saturated(np.arange(self.n_bits - self.words.n_bits + 1))
        return (
            *(items.planes, items.id_buffer, items.starts, *items.run_parts, field, self._loop_rule(least)),
            *(self.table.entries, asked.posteriors, queries, saturated),
        )


def words_and_rule(arrays: dict[str, np.ndarray]) -> tuple[WordDictionary, ScoreRule]:
    """Return the words and the rule of an index file; raise ValueError for arrays that a search cannot trust."""
    entries, rule = (arrays.get(name, np.empty(0)) for name in ("entries", "rule"))
    n_bits = number_of(arrays, "entry_bits", np.int64)
    if entries.dtype != np.float32 or entries.ndim != 2 or not 1 <= n_bits <= MAX_CLASS_BITS or 0 in entries.shape:
        raise ValueError(f"its entries are {entries.dtype} of shape {entries.shape}, numbered by {n_bits} bits")
    if len(entries) > 1 << int(n_bits) or not np.all((entries >= 0) & (entries <= 1)):
        raise ValueError("its entries are no posteriors, or too many")
    if rule.dtype != np.float64 or rule.shape != (3,):
        raise ValueError(f"its rule is {rule.dtype} of shape {rule.shape}")
    return WordDictionary(entries, int(n_bits)), ScoreRule(*rule.tolist())
