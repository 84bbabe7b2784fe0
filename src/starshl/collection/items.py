"""Rows: what is stored of an item, and the codes that follow from labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._common.labels import Label, Labels
from .._common.validation import check_storable
from .._common.warn import warn_caller
from .._common.words import counted
from ..codes.binary import BinaryCodes
from ..exceptions import CollectionFormatError
from .answers import Item
from .blocks import CODES, OWN_CODES
from .columns import Column
from .labels import check_kind, kind_of, label_text
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher

_SHOWN = 5  # in an error message


class Row(NamedTuple):
    """One item as it is stored.

    ``code`` is what a search compares. If it follows from the label, ``own_code`` is the code of the vector, which
    comes back when the label is removed; otherwise it is None. ``class_id`` is that of the label in the vocabulary.
    ``model_digest`` is that of the model that made the code of the vector, None if it is not known. If vectors are
    kept, ``vector_position`` is the number of this one's record in their file, and ``vector_checksum`` its checksum.
    """

    id: int
    code: bytes
    own_code: bytes | None
    class_id: int | None
    model_digest: str | None
    vector_position: int | None
    vector_checksum: int | None
    reference: str | None
    metadata: dict[str, Any]

    @property
    def vector_code(self) -> bytes:
        """The code of the vector, even where a label has replaced it."""
        return self.code if self.own_code is None else self.own_code

    @property
    def code_from(self) -> str:
        """What the code follows from: "label" or "vector"."""
        return "vector" if self.own_code is None else "label"


@dataclass(frozen=True, slots=True, eq=False)
class NewItems:
    """Items to store: their ids, columns of facts about them, references, and undeclared metadata as JSON."""

    ids: np.ndarray
    columns: dict[str, Column]
    references: Sequence[str | None] | None
    others: Sequence[str | None] | None


def item_of(row: Row, vocabulary: Vocabulary, vector: list[float] | None = None) -> Item:
    """Return what users see of a row, with its vector if that was asked for."""
    label = label_of(row, vocabulary)
    return Item(row.id, label, row.metadata, row.reference, row.code_from, row.model_digest, vector)


def label_of(row: Row, vocabulary: Vocabulary) -> Label | None:
    """Return the label of a row whose checksum is right; a crafted file may hold anything there."""
    class_id = row.class_id
    if class_id is not None and not (type(class_id) is int and 0 <= class_id < len(vocabulary.names)):
        raise CollectionFormatError.damaged(f"the item {row.id} has the class {class_id!r}, which is unknown")
    return vocabulary.label(class_id)


def reference_texts(references: Iterable[str | None] | None, n_items: int) -> list[str | None] | None:
    """Return one reference per item, or None."""
    if references is None:
        return None
    references = list(references)
    if len(references) != n_items or not all(isinstance(reference, str | None) for reference in references):
        raise ValueError(f"references must hold {n_items} strings or None, one per item.")
    for number, reference in enumerate(references):
        check_storable(reference or "", f"references[{number}]")
    return references


class ItemCodes(NamedTuple):
    """Codes of items with labels, and which of them follow from the label."""

    codes: BinaryCodes
    from_label: np.ndarray


def item_codes(hasher: BaseHasher, own: BinaryCodes, places: np.ndarray) -> ItemCodes:
    """Return the codes of items, given the codes of their vectors and the places of their classes in the hasher.

    If the hasher supports "relabel", an item of a known class gets the codeword of the class, or a code whose class
    field is that of the label. All other items, whose places are -1, keep the codes of their vectors.
    """
    if "relabel" not in hasher.supports:
        return ItemCodes(own, np.zeros(len(own), bool))
    from_label = places >= 0
    packed = own.packed.copy()
    if from_label.any():
        known = Labels.from_index(hasher.classes_, places[from_label], hasher.classes_.dtype)
        packed[from_label] = hasher.relabel(own[np.flatnonzero(from_label)], known).packed
    codes = replace(own, packed=packed)
    return ItemCodes(codes if hasher.words is None else hasher.words.with_labels(codes, places), from_label)


def code_columns(coded: ItemCodes, own: BinaryCodes) -> dict[str, Column]:
    """Return the columns of codes of items, given the codes of their vectors."""
    kept = coded.from_label
    return {
        CODES: Column(coded.codes.packed),
        OWN_CODES: Column(np.where(kept[:, None], own.packed, 0).astype(np.uint8), None if kept.all() else kept),
    }


def vector_codes(codes: Column, own: Column, width: int) -> np.ndarray:
    """Return the packed codes of vectors, even where labels have replaced them."""
    if not len(codes):
        return np.empty((0, width), np.uint8)
    kept = np.ones(len(own), np.bool_) if own.present is None else own.present
    return np.where(kept[:, None], own.values, codes.values)


def warn_of_unknown(hasher: BaseHasher, vocabulary: Vocabulary, class_ids: np.ndarray, places: np.ndarray) -> None:
    """Warn of labels that the hasher does not know, if known ones would give items their codes."""
    unknown = class_ids[(class_ids >= 0) & (places < 0)]
    names = [(text, count) for text, count in _shown_counts(vocabulary, unknown) if text is not None]
    if not names or "relabel" not in hasher.supports:
        return
    different = sorted({text for text, _ in names})
    shown = ", ".join(different[:_SHOWN]) + (", ..." if len(different) > _SHOWN else "")
    n_items = sum(count for _, count in names)
    warn_caller(
        f"The hasher does not know the label of {counted(n_items, 'item')}: {shown}. The labels are stored, and "
        "the codes stay those of the vectors. To let it know them, fit it anew: collection.refit(), or "
        "`starshl index refit FOLDER` in the shell.",
    )


def _shown_counts(vocabulary: Vocabulary, class_ids: np.ndarray) -> list[tuple[str | None, int]]:
    different, counts = np.unique(class_ids, return_counts=True)
    return [(vocabulary.text(each), count) for each, count in zip(different.tolist(), counts.tolist(), strict=True)]


def check_class_kind(hasher: BaseHasher, texts: Sequence[str | None]) -> None:
    """Refuse labels of another type than the classes that give items their codes."""
    check_kind(texts, class_kind(hasher), "the hasher")


def class_kind(hasher: BaseHasher) -> str:
    """Return what the labels of the classes are that give items their codes, "" if none do."""
    return kind_of([label_text(hasher.class_labels[0])]) if "relabel" in hasher.supports else ""
