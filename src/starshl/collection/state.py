"""What a collection holds in memory: the hasher and the index of one state of the file, never changed afterward."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from .._common.validation import SamplesLike
from ..codes.binary import BinaryCodes, n_bytes
from ..codes.queries import EncodedQueries
from ..exceptions import CollectionFormatError
from ..index.memory import MemoryIndex
from .blocks import CLASSES, CODES, POSITIONS
from .code_space import CodeSpace
from .columns import Column
from .folder import Kernels, Model
from .model_classes import ModelClasses, ShownClasses
from .store import Store
from .vectors import VECTOR_DTYPES, RecordLayout, VectorFile
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher, Capability


@dataclass(frozen=True, slots=True)
class State:
    """One state: its number, the model, the classes, the codes, and the file of vectors.

    Threads search it while others make the next one. ``n_at_choice`` is how many items there were when the kind of
    index was chosen.
    """

    generation: int
    loaded: Model
    vocabulary: Vocabulary
    classes: ModelClasses
    index: MemoryIndex
    n_at_choice: int
    vectors: VectorFile | None

    @classmethod
    def read(cls, store: Store, folder: Path, kernels: Kernels, n_jobs: int | None) -> Self:
        """Read every code of the state that ``store`` sees, and how its model compares them."""
        model = Model(folder, store.model_name(), kernels)
        space, n_bits = model.space, model.space.n_bits
        if store.meta("n_bits") != n_bits:
            raise CollectionFormatError.damaged(
                f"its codes have {store.meta('n_bits')} bits, those of its model {n_bits}"
            )
        _check_space(store, space)
        vectors = _vector_file(store, folder)
        ids, packed = store.read_codes()
        codes = _codes(packed, n_bits)
        vocabulary = store.read_vocabulary()
        classes = ModelClasses.read(store.text_meta("model_classes"), vocabulary, space.n_classes)
        if space.label_words is not None:
            codes = space.label_words.with_labels(codes, classes.places_of(store.column(CLASSES).filled(-1)))
        index = space.make_index(codes, ids, n_jobs)
        n_at_choice, generation = max(len(ids), 1), store.meta("generation")
        return cls(generation, model, vocabulary, classes, index, n_at_choice, vectors)

    def caught_up(self, store: Store) -> Self | None:
        """Return the state that ``store`` sees by reading only what changed, or None if that is not listed."""
        changed = store.changed_since(self.generation)
        files = store.model_name(), store.text_meta("vector_file")
        if changed is None or files != (self.model, self.vector_file_name):
            return None
        if self.vectors is not None:
            self.vectors.check_length(store.meta("n_records"))
        ids = store.present(np.array(changed, np.int64))
        columns = store.blocks.take(ids, [CODES, CLASSES, POSITIONS])
        _check_positions(ids, columns[POSITIONS], store, self.vectors)
        codes = _codes(columns[CODES].values, self.index.n_bits)
        words = self.space.label_words
        if words is not None:
            codes = words.with_labels(codes, self.classes.places_of(columns[CLASSES].filled(-1)))
        touched = np.array(changed, np.int64)
        gone = touched[self.index.holds(touched)]
        known = replace(self, vocabulary=store.read_vocabulary(self.vocabulary))
        successor = known.changed(store.meta("generation"), gone, codes, ids)
        return successor if len(successor.index) == store.meta("n_items") else None

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.loaded.name

    @property
    def hasher(self) -> BaseHasher:
        """The fitted hasher, which is loaded when it is first used."""
        return self.loaded.hasher

    @property
    def space(self) -> CodeSpace:
        """How codes are compared, which needs no hasher."""
        return self.loaded.space

    def require(self, capability: Capability) -> None:
        """Refuse what the hasher does not support."""
        if capability not in self.space.supports:
            self.hasher.require(capability)

    @property
    def shown_classes(self) -> ShownClasses:
        """The classes of the hasher as users see them now."""
        return self.classes.shown(self.vocabulary)

    def encoded(self, X: SamplesLike) -> EncodedQueries:
        """Return rows, or kept vectors, as queries."""
        queries = self.hasher.for_rows(X).encode_queries(X)
        # A hasher of kept vectors makes the same codes, though it lacks the steps that the identity of a space covers.
        return replace(queries, codes=replace(queries.codes, space_id=self.hasher.space_id_))

    @property
    def vector_file_name(self) -> str:
        return "" if self.vectors is None else self.vectors.name

    def require_vectors(self) -> VectorFile:
        """Return the file of vectors, or say how to get one."""
        if self.vectors is None:
            raise ValueError(
                "This collection keeps no vectors. Make one that does: Collection.create(..., vectors='float16')."
            )
        return self.vectors

    def vectors_of(self, store: Store, ids: list[int]) -> np.ndarray:
        """Return the kept vectors of items."""
        return self.require_vectors().read(ids, store.vector_locations(ids))

    def as_indexed(self, by_id: np.ndarray) -> np.ndarray:
        """Return booleans that are given by ascending id in the order of the index."""
        if self.index.is_ascending or not len(by_id):
            return by_id
        ids = self.index.ids
        lowest = ids.min()
        if int(ids.max()) - int(lowest) + 1 == len(ids):
            return by_id[ids - lowest]
        ordered = np.empty_like(by_id)
        ordered[np.argsort(ids)] = by_id
        return ordered

    def changed(
        self, generation: int, gone: np.ndarray | None, codes: BinaryCodes | None, ids: np.ndarray | None
    ) -> Self:
        """Return the state after some items were removed and others added.

        The kind of index is chosen again whenever the number of items has doubled.
        """
        # A copy that shares the arrays: changing an index never changes what its copies see.
        index = copy(self.index)
        if gone is not None and len(gone):
            index.remove(gone)
        if codes is not None:
            space_id = codes.space_id or self.space.space_id
            index.add(replace(codes, space_id=space_id, metric=index.metric), ids)
        if len(index) < 2 * self.n_at_choice:
            return replace(self, generation=generation, index=index)
        held = np.sort(index.ids)
        index = self.space.make_index(index.reconstruct(held), held, index.n_jobs)
        return replace(self, generation=generation, index=index, n_at_choice=len(held))


def _vector_file(store: Store, folder: Path) -> VectorFile | None:
    """Return the file of vectors that a state names, None if it keeps none."""
    name = store.text_meta("vector_file")
    if not name:
        return None
    vector_dtype, n_columns = store.text_meta("vector_dtype"), store.meta("n_columns")
    if vector_dtype not in VECTOR_DTYPES or n_columns < 1:
        raise CollectionFormatError.damaged(f"it claims to keep {vector_dtype!r} vectors of {n_columns} numbers")
    file = VectorFile(folder, name, RecordLayout(vector_dtype, n_columns))
    file.check_length(store.meta("n_records"))
    return file


def _check_space(store: Store, space: CodeSpace) -> None:
    """Refuse codes of another space than the model's."""
    made, held = space.space_id or "", store.text_meta("space")
    if held != made:
        raise CollectionFormatError.damaged(f"its codes are of space {held}, those of the model of space {made}")


def _check_positions(ids: np.ndarray, positions: Column, store: Store, vectors: VectorFile | None) -> None:
    """Refuse items whose vectors are in records that do not exist."""
    n_records, records = store.meta("n_records"), positions.filled(-1)
    wrong = records >= 0 if vectors is None else (records < 0) | (records >= n_records)
    if wrong.any():
        raise CollectionFormatError.damaged(
            f"the item {ids[wrong][0]} has its vector in record {records[wrong][0]}, and there are {n_records}"
        )


def _codes(packed: np.ndarray, n_bits: int) -> BinaryCodes:
    width = n_bytes(n_bits)
    if not len(packed):
        packed = np.empty((0, width), np.uint8)
    if packed.ndim != 2 or packed.shape[1] != width:
        raise CollectionFormatError.damaged(f"its codes do not have the {width} bytes of {n_bits} bits")
    try:
        return BinaryCodes(packed, n_bits)
    except ValueError as error:
        raise CollectionFormatError.damaged(f"its codes cannot be read ({error})") from error
