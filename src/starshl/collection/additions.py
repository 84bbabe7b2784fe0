"""New items on their way in: checked, encoded, and made into rows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._metadata import metadata_texts
from .._types import LabelsLike, SamplesLike
from ..base import BaseHasher
from ..codes import BinaryCodes
from ..exceptions import SpaceMismatchError, UnknownSpaceWarning
from .entries import reference_texts
from .folder import encoder_of
from .labels import ItemCodes, check_class_kind, item_codes, label_texts
from .prepared_rows import kept_rows
from .snapshot import Snapshot
from .store import Row

__all__ = ["EncodedItems", "Samples", "labeled_row"]

_ENCODER = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Samples:
    """Items to store as the user gives them: samples, codes that exist already and who made them, and labels."""

    X: SamplesLike | None
    codes: BinaryCodes | None
    labels: LabelsLike
    encoder: str | None = None

    def __post_init__(self) -> None:
        if self.encoder is not None and self.codes is None:
            raise ValueError("encoder says which model made the codes, but there are no codes. Leave it out.")
        if self.encoder is not None and not (isinstance(self.encoder, str) and _ENCODER.fullmatch(self.encoder)):
            raise ValueError(
                f"The encoder is {self.encoder!r}; it must be 16 hexadecimal digits, like the encoder of a collection."
            )

    def own_codes(self, hasher: BaseHasher, *, keeps_vectors: bool) -> BinaryCodes:
        """Return the codes of the vectors, whatever their labels are."""
        if keeps_vectors and self.X is None:
            raise ValueError("This collection keeps vectors, so X is needed; you may give codes, too.")
        if not keeps_vectors and (self.X is None) == (self.codes is None):
            raise ValueError("Give either X or codes: rows to encode, or codes that you have already.")
        return hasher.encode_database(self.X) if self.codes is None else self.codes


@dataclass(frozen=True, slots=True)
class EncodedItems:
    """Items with the codes that the hasher of one model file gives them."""

    model: str
    encoder: str | None
    own: BinaryCodes
    coded: ItemCodes
    labels: list[str | None]
    vectors: np.ndarray | None

    @classmethod
    def of(cls, samples: Samples, snapshot: Snapshot) -> Self:
        """Encode samples with the hasher of a state."""
        hasher, file = snapshot.hasher, snapshot.vectors
        own = snapshot.index._check_codes(samples.own_codes(hasher, keeps_vectors=file is not None))
        if samples.codes is not None:
            _check_space(own, hasher.space_id_)
        own = hasher.as_codes(own.packed)
        vectors = None if file is None or samples.X is None else kept_rows(hasher, samples.X, file.layout.n_columns)
        if vectors is not None and len(vectors) != len(own):
            raise ValueError(f"X has {len(vectors)} rows and codes {len(own)}; give one code per row.")
        labels = label_texts(samples.labels, len(own))
        check_class_kind(hasher, labels)
        encoder = encoder_of(snapshot.model) if samples.codes is None else samples.encoder
        return cls(snapshot.model, encoder, own, item_codes(hasher, own, labels), labels, vectors)

    def rows(
        self,
        ids: list[int],
        metadata: Sequence[Mapping[str, Any]] | None,
        references: Iterable[str | None] | None,
    ) -> list[Row]:
        """Return the rows to store, still without the places of kept vectors."""
        texts = metadata_texts(metadata, len(ids), ascii_only=True)
        known_references = reference_texts(references, len(ids))
        bare = [
            Row(item, own.tobytes(), None, None, self.encoder, None, None, reference, text)
            for item, own, reference, text in zip(ids, self.own.packed, known_references, texts, strict=True)
        ]
        return [
            labeled_row(row, label, code.tobytes(), bool(by_label))
            for row, label, code, by_label in zip(
                bare, self.labels, self.coded.codes.packed, self.coded.from_label, strict=True
            )
        ]


def _check_space(codes: BinaryCodes, held: str | None) -> None:
    """Refuse codes of another space than the collection's; warn of unknown ones."""
    if held is None:
        return
    if codes.space_id is None:
        warnings.warn(
            f"The space of these codes is unknown; they are stored as codes of the collection's space, {held}. If its "
            "hasher made them, say so: BinaryCodes(packed, n_bits, space_id=collection.space_id).",
            UnknownSpaceWarning,
            stacklevel=5,
        )
    elif codes.space_id != held:
        raise SpaceMismatchError(
            f"These codes are of space {codes.space_id}; the collection holds codes of space {held}. Distances between "
            "spaces mean nothing. Encode with the hasher of the collection, or fit hashers to one Codebook."
        )


def labeled_row(row: Row, label: str | None, code: bytes, from_label: bool) -> Row:
    """Return a row with this label, or without one, and the code that follows."""
    own = row.vector_code
    return row._replace(label=label, code=code if from_label else own, own_code=own if from_label else None)
