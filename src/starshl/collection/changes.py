"""Changes of a collection: each one is encoded first and then stored in one transaction, or not at all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._common.labels import Labels, LabelsLike
from .._common.validation import SamplesLike
from .._common.warn import warn_caller
from ..codes.binary import BinaryCodes, n_bytes
from ..exceptions import SpaceMismatchError, UnknownSpaceWarning
from ..index.base import check_ids, next_ids
from .answers import ClassChange, Item
from .blocks import CLASSES, CODES, MODELS, OWN_CODES, POSITIONS, VECTOR_SUMS
from .columns import Column
from .embedding import check_embedder_stays
from .fields import Fields, described
from .folder import Kernels, digest_of_model, save_model
from .items import (
    NewItems,
    check_class_kind,
    class_kind,
    code_columns,
    item_codes,
    item_of,
    reference_texts,
    vector_codes,
    warn_of_unknown,
)
from .labels import check_kind, class_texts, item_labels, kind_of
from .model_classes import ModelClasses, texts_of_classes
from .previews import check_previews, delete_previews, put_previews
from .session import Change, Session
from .state import State
from .store import Store
from .vectors import batches, called_with_vectors, kept_rows
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher

_DIGEST = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Samples:
    """Items to store as the user gives them: samples, codes that exist already and who made them, and labels."""

    X: SamplesLike | None
    codes: BinaryCodes | None
    labels: LabelsLike
    model_digest: str | None = None

    def __post_init__(self) -> None:
        if self.model_digest is not None and self.codes is None:
            raise ValueError("model_digest says which model made the codes, but there are no codes. Leave it out.")
        if self.model_digest is not None and not _is_digest(self.model_digest):
            raise ValueError(
                f"model_digest is {self.model_digest!r}; it must be 16 hexadecimal digits, like that of a collection."
            )

    def own_codes(self, hasher: BaseHasher, *, keeps_vectors: bool) -> BinaryCodes:
        """Return the codes of the vectors, whatever their labels are."""
        if keeps_vectors and self.X is None:
            raise ValueError("This collection keeps vectors, so X is needed; you may give codes, too.")
        if not keeps_vectors and (self.X is None) == (self.codes is None):
            raise ValueError("Give either X or codes: rows to encode, or codes that you have already.")
        return hasher.encode_database(self.X) if self.codes is None else self.codes


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class EncodedItems:
    """Items with the codes that the hasher of one model file gives their vectors."""

    model: str
    model_digest: str | None
    own: BinaryCodes
    labels: Labels
    vectors: np.ndarray | None

    @classmethod
    def of(cls, samples: Samples, state: State) -> Self:
        """Encode samples with the hasher of a state."""
        hasher, file = state.hasher, state.vectors
        own = state.index.check_codes(samples.own_codes(hasher, keeps_vectors=file is not None))
        if samples.codes is not None:
            _check_space(own, hasher.space_id_)
        own = hasher.as_codes(own.packed)
        vectors = None if file is None or samples.X is None else kept_rows(hasher, samples.X, file.layout.n_columns)
        if vectors is not None and len(vectors) != len(own):
            raise ValueError(f"X has {len(vectors)} rows and codes {len(own)}; give one code per row.")
        labels = item_labels(samples.labels, len(own))
        check_class_kind(hasher, class_texts(labels))
        model_digest = digest_of_model(state.model) if samples.codes is None else samples.model_digest
        return cls(state.model, model_digest, own, labels, vectors)


def _check_space(codes: BinaryCodes, held: str | None) -> None:
    """Refuse codes of another space than the collection's; warn of unknown ones."""
    if held is None:
        return
    if codes.space_id is None:
        warn_caller(
            f"The space of these codes is unknown; they are stored as codes of the collection's space, {held}. If its "
            "hasher made them, say so: BinaryCodes(packed, n_bits, space_id=collection.space_id).",
            UnknownSpaceWarning,
        )
    elif codes.space_id != held:
        raise SpaceMismatchError(
            f"These codes are of space {codes.space_id}; the collection holds codes of space {held}. Distances between "
            "spaces mean nothing. Encode with the hasher of the collection, or fit hashers to one Codebook."
        )


class _Coded(NamedTuple):
    """The codes of items, and the columns that say so."""

    codes: BinaryCodes
    columns: dict[str, Column]


def _coded(change: Change, own: BinaryCodes, class_ids: np.ndarray, *, warn_unknown: bool = True) -> _Coded:
    """Return the codes of items of these classes."""
    state = change.state
    places = state.classes.places_of(class_ids)
    if warn_unknown:
        warn_of_unknown(state.hasher, state.vocabulary, class_ids, places)
    coded = item_codes(state.hasher, own, places)
    return _Coded(coded.codes, code_columns(coded, own) | {CLASSES: Column.numbers_or_none(class_ids)})


def put_items(
    session: Session,
    samples: Samples,
    ids: ArrayLike | None,
    metadata: Sequence[Mapping[str, Any]] | None,
    references: Iterable[str | None] | None,
    previews: Iterable[bytes | None] | None,
    *,
    replace: bool,
) -> np.ndarray:
    """Store items and return their ids; without ``replace``, all ids must be new."""
    session.check_writable()
    with session.reading() as (state, _):
        pass
    # Encoded before the change begins, so that other threads can write in the meantime.
    items = EncodedItems.of(samples, state)
    with session.writing() as change:
        if change.state.model != items.model:
            # Another thread has replaced the hasher; from here on, none can.
            items = EncodedItems.of(dataclasses.replace(samples, labels=items.labels), change.state)
        chosen = _chosen_ids(change, ids, len(items.own))
        present = chosen[change.state.index.holds(chosen)]
        if len(present) and not replace:
            raise ValueError(
                f"The id {present[0]} is already in the collection, and nothing was added. "
                "Use upsert to replace items, or give new ids."
            )
        # Checked before the vectors are written.
        about = described(metadata, chosen, change.store.fields())
        known_references = reference_texts(references, len(chosen))
        pictures = check_previews(previews, len(chosen))
        _note_kind(change.store, items.labels, chosen)
        coded = _coded(change, items.own, change.class_ids(items.labels))
        columns = coded.columns | about.columns | {MODELS: Column.repeated(items.model_digest, len(chosen))}
        if items.vectors is None:
            columns |= {name: Column.repeated(None, len(chosen)) for name in (POSITIONS, VECTOR_SUMS)}
        else:
            columns |= change.keep_vectors(chosen.tolist(), items.vectors)
        change.store.put(NewItems(chosen, columns, known_references, about.others), present=present)
        delete_previews(change.store, present.tolist())
        put_previews(change.store, chosen, pictures)
        change.change_codes(present, coded.codes, chosen)
    return chosen


def set_item_labels(session: Session, ids: np.ndarray, labels: LabelsLike, *, warn_unknown: bool = True) -> list[Item]:
    """Store labels of items, and the codes that follow; return the items."""
    given = item_labels(labels, len(ids))
    with session.writing() as change:
        check_class_kind(change.state.hasher, class_texts(given))
        own = _vector_codes(change, ids, change.state.hasher)
        _note_kind(change.store, given, ids)
        coded = _coded(change, own, change.class_ids(given), warn_unknown=warn_unknown)
        change.store.assign(ids, coded.columns)
        if np.array_equal(change.state.index.reconstruct(ids).packed, coded.codes.packed):
            change.change_codes()
        else:
            change.change_codes(ids, coded.codes, ids)
        vocabulary = change.state.vocabulary
        return [item_of(row, vocabulary) for row in change.store.rows(ids)]


def describe_items(session: Session, ids: np.ndarray, metadata: Sequence[Mapping[str, Any]]) -> None:
    """Replace the metadata of items."""
    with session.writing() as change:
        change.store.describe(ids, metadata)
        change.change_codes()


def change_classes(session: Session, make: Callable[[Vocabulary, int], Vocabulary]) -> ClassChange:
    """Rename, merge or remove classes, or undo that; return the last change that was made or undone."""
    with session.writing() as change:
        vocabulary = make(change.state.vocabulary, change.generation)
        change.name_classes(vocabulary)
        change.change_codes()
    last = vocabulary.events[-1]
    number = last.subject if last.kind == "undo" else len(vocabulary.events) - 1
    return next(each for each in vocabulary.changes if each.number == number)


def declare(session: Session, fields: Fields) -> None:
    """Declare metadata fields of a collection."""
    with session.writing() as change:
        known = change.store.fields()
        for name, kind in fields.items():
            if known.get(name, kind) != kind:
                raise ValueError(f"The field {name!r} is declared as {known[name]} already; it cannot become {kind}.")
        change.store.declare({name: kind for name, kind in fields.items() if name not in known})
        change.change_codes()


def replace_model(
    session: Session,
    hasher: BaseHasher,
    ids: np.ndarray | None,
    X: SamplesLike | None,
    codes: BinaryCodes | None,
    kernels: Kernels,
) -> None:
    """Encode all items with another hasher, from X or from the kept vectors, unless the codes are known."""
    if codes is not None:
        _check_new_codes(hasher, X, codes)
    with session.writing() as change:
        if X is None and change.state.vectors is not None:
            hasher = _behind_steps_of(change.state.hasher, hasher)
        _check_classes_fit(change.store, hasher)
        check_embedder_stays(change.store, change.state.hasher, hasher)
        held = np.sort(change.state.index.ids)
        kept = X is None and ids is None and _keeps_codes(change, hasher)
        if codes is not None:
            chosen, own = _all_ids(ids, held), codes
        elif kept:
            chosen, own = held, _vector_codes(change, held, change.state.hasher)
        elif X is None:
            chosen, own = held, _encoded_vectors(change, hasher, held.tolist())
        else:
            chosen = _all_ids(ids, held)
            own = hasher.encode_database(X)
        if len(own) != len(chosen):
            given = "rows in X" if codes is None else "codes"
            raise ValueError(f"There are {len(chosen)} ids and {len(own)} {given}; give one of them per id.")
        vectors = None
        if X is not None and change.state.vectors is not None:
            vectors = kept_rows(hasher, X, hasher.vector_width or 0)
        model, space = save_model(change.folder, hasher, kernels)
        session.use_kernels(model, kernels)
        change.store.set_meta("model", model)
        change.store.set_meta("n_bits", own.n_bits)
        change.store.set_meta("space", space.space_id or "")
        change.know(texts_of_classes(hasher))
        vocabulary = change.state.vocabulary
        class_ids = [vocabulary.require(text) for text in texts_of_classes(hasher)]
        classes = ModelClasses.of(class_ids, change.generation, vocabulary)
        change.store.set_meta("model_classes", classes.content)
        model_digest = None if kept else digest_of_model(model)
        _recode(change, hasher, classes, chosen, own, model_digest)
        if vectors is not None:
            change.replace_vectors(chosen.tolist(), vectors)


def _behind_steps_of(present: BaseHasher, new: BaseHasher) -> BaseHasher:
    """Return a hasher of kept vectors behind the steps that made them, so that rows can still be asked for."""
    if present.takes_cells and not new.takes_cells and new.vector_width == present.vector_width:
        return present.with_hasher(new)
    return new


def _check_new_codes(hasher: BaseHasher, X: SamplesLike | None, codes: BinaryCodes) -> None:
    if X is not None:
        raise ValueError("There are both X and codes. Give the samples, or their codes if you have them.")
    if codes.n_bits != hasher.n_bits_:
        raise ValueError(
            f"The codes have {codes.n_bits} bits, and the new hasher makes {hasher.n_bits_}. Encode the samples with "
            "the new one."
        )
    made = hasher.space_id_
    if None not in (codes.space_id, made) and codes.space_id != made:
        raise SpaceMismatchError(
            f"These codes are of space {codes.space_id}; the new hasher makes codes of space {made}. Encode the "
            "samples with the new one."
        )


def _check_classes_fit(store: Store, hasher: BaseHasher) -> None:
    stored, needed = store.text_meta("label_kind"), class_kind(hasher)
    if stored and needed and stored != needed and store.has_labels_besides(np.empty(0, np.int64)):
        raise ValueError(
            f"The classes of the new hasher are {needed}; the labels of the collection are {stored}. Fit the hasher to "
            "labels of the same type, or clear the labels of the items first."
        )


def _keeps_codes(change: Change, hasher: BaseHasher) -> bool:
    """Return whether items may keep their codes: the new hasher is of the same space, and no vectors are kept."""
    return change.state.vectors is None and change.store.text_meta("space") == hasher.space_id_


def _recode(
    change: Change,
    hasher: BaseHasher,
    classes: ModelClasses,
    ids: np.ndarray,
    own: BinaryCodes,
    model_digest: str | None,
) -> None:
    """Give items the codes of a new hasher; their labels stay, and so do their digests if this one is None."""
    class_ids = change.store.blocks.take(ids, [CLASSES])[CLASSES].filled(-1)
    places = classes.places_of(class_ids)
    warn_of_unknown(hasher, change.state.vocabulary, class_ids, places)
    digests = {} if model_digest is None else {MODELS: Column.repeated(model_digest, len(ids))}
    change.store.assign(ids, code_columns(item_codes(hasher, own, places), own) | digests)


def _encoded_vectors(change: Change, hasher: BaseHasher, ids: list[int]) -> BinaryCodes:
    """Return the codes of the kept vectors of all items."""
    file = change.state.vectors
    if file is None:
        raise ValueError(
            f"The collection holds {len(ids)} items and keeps no vectors: a new hasher needs every item exactly once. "
            "Give the ids and X."
        )
    # Other steps would have made other vectors, even if these have as many numbers.
    other_steps = hasher.takes_cells and hasher.fitted_steps != change.state.hasher.fitted_steps
    if hasher.vector_width != file.layout.n_columns or other_steps:
        raise ValueError(
            f"The kept vectors have {file.layout.n_columns} numbers; this hasher was fitted on rows of "
            f"{hasher.n_features_in_}. Give the ids and X for it."
        )
    bare = hasher.without_steps()
    packed = [
        called_with_vectors(bare.encode_database, file.read(portion, change.store.vector_locations(portion))).packed
        for portion in batches(ids)
    ]
    width = n_bytes(hasher.n_bits_)
    return hasher.as_codes(np.concatenate([np.empty((0, width), np.uint8), *packed]))


def _all_ids(ids: np.ndarray | None, held: np.ndarray) -> np.ndarray:
    if ids is None or not np.array_equal(np.sort(ids), held):
        n_given = 0 if ids is None else len(ids)
        raise ValueError(
            f"{n_given} ids were given, and the collection holds {len(held)}. A new hasher needs every item exactly "
            "once: give X with one id per row. A collection that keeps vectors needs neither."
        )
    return ids


def _chosen_ids(change: Change, ids: ArrayLike | None, n_items: int) -> np.ndarray:
    if ids is None:
        return next_ids(n_items, change.state.index.last_id)
    return check_ids(ids, n_items)


def _note_kind(store: Store, labels: Labels, ids: np.ndarray) -> None:
    """Refuse labels of another type than those of other items; remember the type of the first ones."""
    texts = class_texts(labels)
    given, known = kind_of(texts), store.text_meta("label_kind")
    if given and given != known:
        if known and store.has_labels_besides(ids):
            check_kind(texts, known, "the collection")
        store.set_meta("label_kind", given)


def _vector_codes(change: Change, ids: np.ndarray, hasher: BaseHasher) -> BinaryCodes:
    columns = change.store.blocks.take(ids, [CODES, OWN_CODES])
    return hasher.as_codes(vector_codes(columns[CODES], columns[OWN_CODES], n_bytes(hasher.n_bits_)))
