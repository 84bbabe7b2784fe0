"""An open collection: the folder, and what can be said about it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike
from ..base import BaseHasher
from ..features import Extractor
from .entries import Item, metadata_of
from .fields import Value
from .filtering import Filters, kind_of_labels, unknown_labels_note
from .folder import Kernels, encoder_of
from .labels import label_texts
from .overview import count_labels, count_values, labels_by_id, passing_ids
from .raw import extractor_file, kind_of_items, load_extractor, title_field, unknown_texts_note
from .search import Hit
from .session import Session

__all__ = ["OpenCollection"]


class OpenCollection:
    """A collection that is open until it is closed."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        kernels: Kernels = None,
        steps: Sequence[Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.read_only = read_only
        self.n_jobs = n_jobs
        self._steps = steps
        self._extractor: tuple[str, Extractor] | None = None
        self._session = Session(self.folder, read_only=read_only, kernels=kernels, n_jobs=n_jobs)

    @property
    def hasher(self) -> BaseHasher:
        """The fitted hasher of this collection."""
        with self._session.reading() as (snapshot, _):
            return snapshot.hasher

    @property
    def n_bits(self) -> int:
        """The length of the codes."""
        with self._session.reading() as (snapshot, _):
            return snapshot.index.n_bits

    @property
    def keeps(self) -> str | None:
        """How vectors are kept: "float16", "int8", or None if they are not."""
        with self._session.reading() as (snapshot, _):
            return None if snapshot.vectors is None else snapshot.vectors.layout.kind

    @property
    def space_id(self) -> str | None:
        """The identity of the space of the codes, None if it is unknown; codes of other spaces are refused."""
        with self._session.reading() as (snapshot, _):
            return snapshot.hasher.space_id_

    @property
    def encoder(self) -> str:
        """A digest of the hasher's model file; items remember that of the model that encoded them."""
        with self._session.reading() as (snapshot, _):
            return encoder_of(snapshot.model)

    @property
    def version(self) -> int:
        """The number of changes that were ever stored."""
        with self._session.reading() as (snapshot, _):
            return snapshot.generation

    @property
    def fields(self) -> dict[str, str]:
        """The declared metadata fields and their types: "int", "float", "str" or "bool"."""
        with self._session.reading() as (_, store):
            return store.fields()

    @property
    def label_kind(self) -> str | None:
        """What labels must be: "text", "numbers" or "booleans"; None as long as there are none to compare with."""
        with self._session.reading() as (snapshot, store):
            return kind_of_labels(snapshot.hasher, store)

    @cached_property
    def kind(self) -> str:
        """What items are: "pictures", "texts" or "vectors"."""
        with self._session.reading() as (_, store):
            return kind_of_items(store)

    @cached_property
    def title(self) -> str | None:
        """The metadata field that says what an item is, None if none was named."""
        with self._session.reading() as (_, store):
            return title_field(store)

    def kept_features(self) -> tuple[str, ...]:
        """Return the columns of the hasher's table that items have as metadata, too, as the first item shows."""
        with self._session.reading() as (snapshot, store):
            names = getattr(snapshot.hasher, "feature_names_in_", ())
            if not len(names) or not len(snapshot.index):
                return ()
            first = metadata_of(store.rows([int(snapshot.index.ids.min())])[0])
            return tuple(str(name) for name in names if str(name) in first)

    def title_of(self, item: Item | Hit) -> str:
        """Return what to call an item: its title, the last part of its reference, or its number."""
        found = item.metadata.get(self.title or "")
        if found is not None:
            return str(found)
        name = (item.reference or "").rstrip("/").rpartition("/")[2]
        return name or f"Item {item.id}"

    @property
    def extractor(self) -> Extractor | None:
        """What makes vectors from raw pictures or texts, None if the collection only knows vectors.

        It is loaded when it is first needed: a collection whose extractor needs a library that is not installed can
        still be searched by vector.
        """
        with self._session.reading() as (_, store):
            name = extractor_file(store)
        if name is None:
            return None
        if self._extractor is None or self._extractor[0] != name:
            self._extractor = name, load_extractor(self.folder, name, self._steps)
        return self._extractor[1]

    def extract(self, raw: Any, *, warn_unknown: bool = True) -> np.ndarray:
        """Return the vectors of raw pictures (paths, bytes or arrays) or texts, one row per item, to search or add.

        Parameters
        ----------
        raw : list of pictures or texts
            What :attr:`kind` says.
        warn_unknown : bool, default=True
            Warn of texts without any known word, whose vectors are zeros.
        """
        extractor = self.extractor
        if extractor is None:
            raise ValueError(
                "This collection has no extractor: it takes vectors, not pictures or texts. Make a collection with an "
                "extractor: Collection.create(..., extractor=...)."
            )
        vectors = extractor.transform(raw)
        note = unknown_texts_note(raw, vectors) if warn_unknown and extractor.kind == "texts" else None
        if note is not None:
            warnings.warn(note, UserWarning, stacklevel=2)
        return vectors

    def __len__(self) -> int:
        with self._session.reading() as (snapshot, _):
            return len(snapshot.index)

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        with self._session.reading() as (snapshot, _):
            return np.sort(snapshot.index.ids)

    @property
    def vectors_state(self) -> tuple[str, int, int]:
        """What changes whenever kept vectors do: the name of their file, how many were written, and how many remain."""
        with self._session.reading() as (snapshot, store):
            n_written = 0 if snapshot.vectors is None else store.fact("n_slots")
            return snapshot.vector_file_name, n_written, len(snapshot.index)

    def label_counts(self) -> dict[str | int | bool, int]:
        """Return how many items have each label, the most frequent first; unlabeled items are not counted."""
        with self._session.reading() as (snapshot, store):
            return count_labels(snapshot, store)

    def unknown_labels_note(self, labels: LabelsLike) -> str | None:
        """Say which of these labels no item has, and which there are; None if all are known, or there are none."""
        given = np.atleast_1d(np.asarray(labels, dtype=object))
        texts = [text for text in label_texts(given, len(given)) if text is not None]
        with self._session.reading() as (snapshot, store):
            return None if store.is_outdated else unknown_labels_note(snapshot, store, texts)

    def labels(self) -> dict[int, str | int | bool]:
        """Return the labels of all items that have one, by ascending id."""
        with self._session.reading() as (snapshot, store):
            return labels_by_id(snapshot, store)

    def value_counts(self, field: str) -> dict[Value, int]:
        """Return how many items have each value of a declared field, the most frequent first."""
        with self._session.reading() as (snapshot, store):
            return count_values(snapshot, store, field)

    def find(
        self, where: Mapping[str, Any] | None = None, *, among: ArrayLike | None = None, labels: LabelsLike = None
    ) -> np.ndarray:
        """Return the ids of the items that pass filters, ascending; the filters are those of :meth:`search`."""
        with self._session.reading() as (snapshot, store):
            return passing_ids(snapshot, store, Filters(where, among, labels))

    def close(self) -> None:
        """Close the files; another process may write from then on."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
