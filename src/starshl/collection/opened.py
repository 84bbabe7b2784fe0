"""An open collection: the folder, and what can be said about it."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from ..base import BaseHasher
from .changes import kind_of_labels
from .folder import Kernels, encoder_of
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

    def close(self) -> None:
        """Close the files; another process may write from then on."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
