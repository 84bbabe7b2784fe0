"""An open collection: the folder, and what can be said about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import LabelsLike
from ..base import BaseHasher
from .changes import kind_of_labels
from .fields import Value
from .filtering import Filters
from .folder import Kernels, encoder_of
from .overview import count_labels, count_values, passing_ids
from .session import Session

__all__ = ["OpenCollection"]


class OpenCollection:
    """A collection that is open until it is closed; :class:`Collection` adds what can be done with it."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        kernels: Kernels = None,
        n_jobs: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.read_only = read_only
        self.n_jobs = n_jobs
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

    def value_counts(self, field: str) -> dict[Value, int]:
        """Return how many items have each value of a declared field, the most frequent first."""
        with self._session.reading() as (snapshot, store):
            return count_values(snapshot, store, field)

    def matching(
        self, where: Mapping[str, Any] | None = None, *, among: ArrayLike | None = None, labels: LabelsLike = None
    ) -> np.ndarray:
        """Return the ids of the items that pass filters, ascending; the filters are those of a search."""
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
