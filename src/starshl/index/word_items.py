"""Items that begin with a word for their class: in runs of equal words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from ..codes.binary import BinaryCodes, n_bytes
from ..codes.hamming import from_planes, to_planes
from ..codes.hamming_words import HammingWords
from ..codes.word_dictionary import WordDictionary, numbers_in
from . import _probability_loops as loops
from . import _run_loops as run_loops
from .base import all_different
from .items import (
    IndexItems,
    check_columns,
    empty_planes,
    grown_capacity,
    positions_of_ids,
)

# Runs behind the sorted ones that are cheap to visit, next to so many items or runs.
_FEWEST_TAIL_RUNS, _ITEMS_PER_TAIL_RUN, _RUNS_PER_TAIL_RUN = 256, 512, 8


class EntryTable:
    """A dictionary as compiled loops read it: its entries by class, the first of which may be labels."""

    def __init__(self, words: WordDictionary) -> None:
        self.words = words
        self.entries = np.ascontiguousarray(words.entries.T, np.float32)
        self.n_labels = words.n_classes if words.has_labels else 0

    def of_runs(self, codes: BinaryCodes) -> tuple[np.ndarray, ...]:
        """Return what loops read of codes, one for each run, which hold words alone: their numbers."""
        return (np.minimum(numbers_in(codes, self.words.n_bits), len(self.words.entries) - 1).astype(np.int32),)

    def probabilities(self, posterior: np.ndarray, planes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the probabilities of some runs for a query."""
        by_entry = np.empty(self.entries.shape[1])
        loops.entry_probabilities(posterior, self.entries, self.n_labels, by_entry)
        return by_entry[numbers]


class CodewordTable:
    """Codewords as compiled loops read them, and what a bit costs."""

    def __init__(self, words: HammingWords) -> None:
        self.words = words
        self.codewords = to_planes(BinaryCodes.from_signs(words.codewords))
        self.decay = np.exp(-words.sharpness * np.arange(words.n_bits + 1))

    def of_runs(self, codes: BinaryCodes) -> tuple[np.ndarray, ...]:
        """Return what loops read of codes, one for each run: columns of labels, norms and nearest distances."""
        nearest, norms = loops.word_norms(to_planes(codes), self.codewords, self.decay)
        return self.words.columns_of(codes).astype(np.int32), norms, nearest

    def probabilities(self, posterior: np.ndarray, planes: np.ndarray, *parts: np.ndarray) -> np.ndarray:
        """Return the probabilities of some runs for a query."""
        found = np.empty(planes.shape[1])
        loops.word_probabilities(posterior, planes, 0, *parts, self.codewords, self.decay, found)
        return found


WordTable: TypeAlias = EntryTable | CodewordTable


@dataclass(frozen=True, eq=False)
class ItemTerms:
    """What makes the squared norms of the vectors that items stand for, in steps of ``step``.

    The norm of word w with the neighbor bits b is norms[w] + 2 sum_j b_j products[w, j] + constant.
    """

    n_word_bits: int
    norms: np.ndarray
    products: np.ndarray
    constant: float
    step: float

    def of(self, planes: np.ndarray, numbers: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return the norms of items in runs of these words."""
        own = (self.norms, self.products, self.constant)
        return run_loops.reconstruction_norms(planes, numbers, starts, self.n_word_bits, *own)


@dataclass(frozen=True, eq=False)
class WordItems(IndexItems):
    """Items in runs: all of a run have the same word and the same label, and ascending ids.

    The first ``n_sorted`` runs are all different, in the order of words. Those behind them were added later and may
    repeat words; if there are too many of them, all are sorted again. ``planes`` hold whole codes, or nothing where
    codes are words; ``run_planes`` the words of runs, and ``run_parts`` what loops read of them. As in
    :class:`FlatItems`, what is after the first ``n_items`` entries of planes, ids and terms is spare capacity, which
    later items may fill.
    """

    n_bits: int
    table: WordTable
    planes: np.ndarray
    id_buffer: np.ndarray
    starts: np.ndarray
    classes: np.ndarray
    run_planes: np.ndarray
    run_parts: tuple[np.ndarray, ...]
    n_sorted: int = 0
    last_id: int | None = None
    terms: ItemTerms | None = None
    term_buffer: np.ndarray = field(default_factory=partial(np.empty, 0, np.float32))

    @classmethod
    def empty_with(cls, n_bits: int, table: WordTable, keeps_codes: bool) -> Self:
        """Return no items, whose words are these; there is nothing but words, unless it keeps codes."""
        n_word_bits = table.words.n_bits
        nothing = BinaryCodes(np.empty((0, n_bytes(n_word_bits)), np.uint8), n_word_bits)
        planes = empty_planes(n_bits) if keeps_codes else np.empty((0, 0), np.uint8)
        none, start = np.empty(0, np.int32), np.zeros(1, np.int64)
        of_runs = to_planes(nothing), table.of_runs(nothing)
        return cls(n_bits, table, planes, np.empty(0, np.int64), start, none, *of_runs)

    def with_arrays(self, arrays: dict[str, np.ndarray]) -> Self:
        """Return what a file holds, whose words are those of these items."""
        ids, starts, classes, run_planes = (arrays[name] for name in ("ids", "starts", "classes", "words"))
        if ids.dtype != np.int64 or ids.ndim != 1 or not all_different(ids):
            raise ValueError("its ids are not different 64-bit integers")
        if starts.dtype != np.int64 or starts.ndim != 1 or not len(starts) or starts[0] or starts[-1] != len(ids):
            raise ValueError(f"its starts do not rise from 0 to the number of ids, {len(ids)}")
        if np.any(starts[1:] <= starts[:-1]):
            raise ValueError("its starts do not ascend")
        if not np.isin(np.flatnonzero(ids[1:] <= ids[:-1]) + 1, starts).all():
            raise ValueError("the ids of a run are not in ascending order")
        n_runs = len(starts) - 1
        if classes.dtype != np.int32 or classes.shape != (n_runs,) or np.any(classes < -1):
            raise ValueError("its classes are not one position in a codebook per run, or -1")
        check_columns(run_planes, self.n_word_bits, n_runs)
        planes = self.planes
        if self.keeps_codes:
            planes = arrays["planes"]
            check_columns(planes, self.n_bits, len(ids))
            fields = to_planes(_first_bits(from_planes(planes, self.n_bits), self.n_word_bits))
            if not np.array_equal(fields, np.repeat(run_planes, np.diff(starts), axis=1)):
                raise ValueError("the codes of a run begin with another word than that of the run")
        codes = replace(from_planes(run_planes, self.n_word_bits), classes=classes)
        return replace(
            self,
            planes=planes,
            id_buffer=ids,
            starts=starts,
            classes=classes,
            run_planes=run_planes,
            run_parts=self.table.of_runs(codes),
            n_sorted=n_runs,
            last_id=int(ids.max()) if len(ids) else None,
        )._with_terms()

    def arrays(self) -> dict[str, np.ndarray]:
        items = self._sorted() if self.n_sorted < self.n_runs else self
        held = {"ids": items.ids, "starts": items.starts, "classes": items.classes, "words": items.run_planes}
        return held | ({"planes": items.planes[:, : items.n_items]} if self.keeps_codes else {})

    @property
    def n_items(self) -> int:
        return int(self.starts[-1])

    @property
    def n_word_bits(self) -> int:
        """How many bits at the beginning of a code are a word."""
        return self.table.words.n_bits

    @property
    def keeps_codes(self) -> bool:
        """Whether codes have more bits than words."""
        return len(self.planes) > 0

    @property
    def n_runs(self) -> int:
        return len(self.starts) - 1

    @property
    def ids(self) -> np.ndarray:
        return self.id_buffer[: self.n_items]

    @property
    def nbytes(self) -> int:
        held = (
            self.planes,
            self.id_buffer,
            self.term_buffer,
            self.starts,
            self.classes,
            self.run_planes,
            *self.run_parts,
        )
        return sum(array.nbytes for array in held)

    def __len__(self) -> int:
        return self.n_items

    def inserted(self, codes: BinaryCodes, ids: np.ndarray) -> Self:
        added = self._runs_of(codes, ids)
        n_old, n_new = self.n_items, self.n_items + len(ids)
        planes, id_buffer, term_buffer = self.planes, self.id_buffer, self.term_buffer
        if len(id_buffer) < n_new:
            capacity = grown_capacity(self.n_bits, n_old, n_new)
            planes = _grown(planes, n_old, capacity) if self.keeps_codes else planes
            id_buffer = _grown(id_buffer, n_old, capacity)
            term_buffer = term_buffer if self.terms is None else _grown(term_buffer, n_old, capacity)
        id_buffer[n_old:n_new] = added.id_buffer
        if self.keeps_codes:
            planes[:, n_old:n_new] = added.planes
        if self.terms is not None:
            term_buffer[n_old:n_new] = added.term_buffer
        larger = replace(
            self,
            planes=planes,
            id_buffer=id_buffer,
            term_buffer=term_buffer,
            starts=np.concatenate([self.starts, n_old + added.starts[1:]]),
            classes=np.concatenate([self.classes, added.classes]),
            run_planes=np.concatenate([self.run_planes, added.run_planes], axis=1),
            run_parts=tuple(map(np.concatenate, zip(self.run_parts, added.run_parts, strict=True))),
            n_sorted=self.n_sorted if n_old else added.n_runs,
            last_id=max(int(ids[-1]), self.last_id if self.last_id is not None else int(ids[-1])),
        )
        n_tail = larger.n_runs - larger.n_sorted
        most = max(_FEWEST_TAIL_RUNS, n_new // _ITEMS_PER_TAIL_RUN, larger.n_sorted // _RUNS_PER_TAIL_RUN)
        return larger._sorted() if n_tail > most else larger

    def _runs_of(self, codes: BinaryCodes, ids: np.ndarray) -> Self:
        """Return new items alone, in runs."""
        word_codes = _first_bits(codes, self.n_word_bits)
        word_planes = to_planes(word_codes)
        classes = np.full(len(ids), -1, np.int32) if codes.classes is None else codes.classes
        order = np.lexsort((classes, *word_planes))
        starts = _starts_of_runs(word_planes[:, order], classes[order])
        firsts = order[starts[:-1]]
        run_codes = replace(word_codes[firsts], classes=classes[firsts])
        return replace(
            self,
            planes=np.ascontiguousarray(to_planes(codes)[:, order]) if self.keeps_codes else self.planes,
            id_buffer=ids[order],
            starts=starts,
            classes=classes[firsts],
            run_planes=to_planes(run_codes),
            run_parts=self.table.of_runs(run_codes),
            n_sorted=len(firsts),
        )._with_terms()

    def _with_terms(self) -> Self:
        """Return the same items with the terms of all of them."""
        if self.terms is None:
            return self
        return replace(self, term_buffer=self.terms.of(self.planes, self.run_parts[0], self.starts))

    def _sorted(self) -> Self:
        """Return the same items in one run for each word and label."""
        order = np.lexsort((self.classes, *self.run_planes))
        starts = _starts_of_runs(self.run_planes[:, order], self.classes[order])
        run_of = np.empty(self.n_runs, np.int64)
        run_of[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        run_of_item = np.repeat(run_of, np.diff(self.starts))
        by_run = np.lexsort((self.ids, run_of_item))
        firsts = order[starts[:-1]]
        sizes = np.bincount(run_of_item, minlength=len(firsts))
        return replace(
            self,
            planes=np.ascontiguousarray(self.planes[:, by_run]) if self.keeps_codes else self.planes,
            id_buffer=self.ids[by_run],
            term_buffer=self.term_buffer if self.terms is None else self.term_buffer[by_run],
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            classes=self.classes[firsts],
            run_planes=np.ascontiguousarray(self.run_planes[:, firsts]),
            run_parts=tuple(part[firsts] for part in self.run_parts),
            n_sorted=len(firsts),
        )

    def selected(self, mask: np.ndarray) -> Self:
        sizes = np.add.reduceat(mask, self.starts[:-1], dtype=np.int64) if self.n_items else np.empty(0, np.int64)
        kept, ids = np.flatnonzero(sizes), self.ids[mask]
        return replace(
            self,
            planes=np.ascontiguousarray(self.planes[:, : self.n_items][:, mask]) if self.keeps_codes else self.planes,
            id_buffer=ids,
            term_buffer=self.term_buffer if self.terms is None else self.term_buffer[: self.n_items][mask],
            starts=np.concatenate([[0], np.cumsum(sizes[kept])]),
            classes=self.classes[kept],
            run_planes=np.ascontiguousarray(self.run_planes[:, kept]),
            run_parts=tuple(part[kept] for part in self.run_parts),
            n_sorted=int(np.count_nonzero(kept < self.n_sorted)),
            last_id=int(ids.max()) if len(ids) else None,
        )

    def find(self, ids: np.ndarray) -> np.ndarray:
        return positions_of_ids(self.ids, ids)

    def runs_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the run of each position."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def probabilities(self, posterior: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """Return how likely the items of some runs are of the class of a query."""
        return self.table.probabilities(posterior, self.run_planes[:, runs], *(part[runs] for part in self.run_parts))

    def codes_at(self, positions: np.ndarray) -> BinaryCodes:
        """Return the codes of positions, with the classes of those that follow from a label."""
        runs = self.runs_at(positions)
        planes = self.planes[:, positions] if self.keeps_codes else self.run_planes[:, runs]
        codes, classes = from_planes(planes, self.n_bits), self.classes[runs]
        return replace(codes, classes=classes) if np.any(classes >= 0) else codes


def _grown(buffer: np.ndarray, n_used: int, capacity: int) -> np.ndarray:
    """Return the used part of a buffer in a larger one."""
    larger = np.empty((*buffer.shape[:-1], capacity), buffer.dtype)
    larger[..., :n_used] = buffer[..., :n_used]
    return larger


def _first_bits(codes: BinaryCodes, n_bits: int) -> BinaryCodes:
    """Return the words at the beginning of codes."""
    if codes.n_bits == n_bits:
        return codes
    packed = codes.packed[:, : n_bytes(n_bits)].copy()
    if n_bits % 8:
        packed[:, -1] &= (1 << n_bits % 8) - 1
    return BinaryCodes(packed, n_bits, classes=codes.classes)


def _starts_of_runs(planes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return where runs of equal words and classes start, and the number of all at the end."""
    differs = np.any(planes[:, 1:] != planes[:, :-1], axis=0) | (classes[1:] != classes[:-1])
    return np.concatenate([np.zeros(min(1, len(classes)), np.int64), np.flatnonzero(differs) + 1, [len(classes)]])
