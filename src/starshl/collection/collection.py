"""Collection: items, their codes and the hasher that made them, in one folder that survives crashes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._metadata import metadata_texts
from .._types import LabelsLike, SamplesLike
from ..base import BaseHasher
from ..codes import BinaryCodes
from ..index.base import check_ids, next_ids
from .entries import metadata_of, reference_texts
from .export import write_rows
from .folder import Kernels, appearing_folder, save_model
from .search import Hit, Queries, search_nearest, search_within
from .session import DATABASE, Session
from .store import Row, Store

__all__ = ["Collection", "Hit", "Item"]


class Item(NamedTuple):
    """What a collection keeps of an item besides its code."""

    id: int
    reference: str | None
    metadata: dict[str, Any]


class Collection:
    """A durable set of items with codes, searched exactly.

    A batch is stored completely or not at all, and once a method has returned, its change survives a crash
    of the process or the machine. One process may write at a time; any number may read meanwhile, and each
    search sees one unchanging state. A damaged file is refused, never searched.

    Labels are metadata: change them at any time with :meth:`update`. You can add items of a new class as
    they are; their codes come from hash functions learned without that class. A newly fitted hasher has
    different hash functions and needs every item encoded again: :meth:`replace_hasher`.

    Parameters
    ----------
    folder : path
    read_only : bool, default=False
        Leave the folder as it is; other processes may write to it.
    kernels : list of kernels, default=None
        Those of the hasher, if it was fitted with functions, which a file cannot hold.
    n_jobs : int, default=None
        Threads of a search.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from starshl.baselines import LSHash
    >>> from starshl.collection import Collection
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp()) / "digits"
    >>> with Collection.create(folder, LSHash(32, random_state=0).fit(X)) as digits:
    ...     ids = digits.add(X, metadata=[{"label": int(label)} for label in y])
    ...     hits = digits.search(X[:1], k=2, where={"label": 0})[0]
    >>> [(hit.id, hit.distance, hit.metadata) for hit in hits]
    [(0, 0, {'label': 0}), (458, 1, {'label': 0})]
    """

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

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        hasher: BaseHasher,
        *,
        kernels: Kernels = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Make a new, empty collection for codes of a fitted hasher; the folder must not exist yet.

        ``kernels`` are those of the hasher, if it was fitted with functions, which a file cannot hold.
        """
        check_is_fitted(hasher)
        with appearing_folder(Path(folder)) as draft:
            model = save_model(draft, hasher, kernels)
            Store.create(draft / DATABASE, model, hasher.n_bits_)
        return cls(folder, kernels=kernels, n_jobs=n_jobs)

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

    def __len__(self) -> int:
        with self._session.reading() as (snapshot, _):
            return len(snapshot.index)

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        with self._session.reading() as (snapshot, _):
            return np.sort(snapshot.index.ids)

    def add(
        self,
        X: SamplesLike | None = None,
        y: LabelsLike = None,
        *,
        codes: BinaryCodes | None = None,
        ids: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
    ) -> np.ndarray:
        """Store new items and return their ids.

        Parameters
        ----------
        X : samples for the hasher, default=None
        y : array of shape (n_items,), default=None
            Labels of the items, for hashers that make better codes with them. They are not stored: put labels that
            you want to search by into ``metadata``.
        codes : BinaryCodes, default=None
            The codes, instead of X, if you have them already.
        ids : array of int, default=None
            New ids; the next free ones if None.
        metadata : list of dict, default=None
            One dictionary per item, of what JSON can hold.
        references : list of str or None, default=None
            Where the picture or text is, one per item.
        """
        return self._put(_Samples(X, y, codes), ids, metadata, references, replace=False)

    def upsert(
        self,
        X: SamplesLike | None = None,
        y: LabelsLike = None,
        *,
        ids: ArrayLike,
        codes: BinaryCodes | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
    ) -> np.ndarray:
        """Store items under given ids, replacing those that exist; the arguments are those of :meth:`add`."""
        return self._put(_Samples(X, y, codes), ids, metadata, references, replace=True)

    def update(self, ids: ArrayLike, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Replace the metadata of items, for example their labels; codes and references stay."""
        checked_ids = check_ids(ids)
        texts = metadata_texts(metadata, len(checked_ids), ascii_only=True)
        with self._session.writing() as change:
            rows = change.store.rows(checked_ids.tolist())
            change.store.put(row._replace(metadata=text) for row, text in zip(rows, texts, strict=True))
            change.change_codes()

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; if an id is unknown, nothing is removed."""
        ids = check_ids(ids)
        with self._session.writing() as change:
            missing = np.setdiff1d(ids, change.store.present(ids.tolist()))
            if len(missing):
                raise KeyError(f"The id {missing[0]} is not in the collection; nothing was removed.")
            change.store.delete(ids.tolist())
            change.change_codes(gone=ids)

    def get(self, ids: ArrayLike) -> list[Item]:
        """Return items by id."""
        with self._session.reading() as (_, store):
            rows = store.rows(check_ids(ids).tolist())
        return [Item(row.id, row.reference, metadata_of(row)) for row in rows]

    def codes(self, ids: ArrayLike) -> BinaryCodes:
        """Return the codes of items."""
        with self._session.reading() as (snapshot, _):
            return snapshot.index.reconstruct(ids)

    def search(
        self,
        X: SamplesLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        among: ArrayLike | None = None,
        by_scores: bool = False,
    ) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id.

        Parameters
        ----------
        X : samples for the hasher, default=None
        k : int, default=10
            If fewer items are stored, or pass the filters, all of them are returned.
        items : array of int, default=None
            Ids of stored items to search for by their codes, instead of X; an item is its own nearest neighbor.
        where : dict, default=None
            A filter on metadata, such as ``{"label": 3, "price": {"<": 10}}``.
        among : array of int, default=None
            Ids of the items that may be returned; unknown ids are ignored. With ``where``, items must pass both.
        by_scores : bool, default=False
            Order items at equal distance by their inner product with the real-valued scores of the query;
            needs X.
        """
        with self._session.reading() as (snapshot, store):
            queries = Queries.of(snapshot, X, items, with_scores=by_scores)
            return search_nearest(snapshot, store, queries, k, where, among)

    def search_radius(
        self,
        X: SamplesLike | None = None,
        radius: int = 0,
        *,
        items: ArrayLike | None = None,
        where: Mapping[str, Any] | None = None,
        among: ArrayLike | None = None,
    ) -> list[list[Hit]]:
        """Return all items within ``radius`` of each query; the arguments are those of :meth:`search`."""
        with self._session.reading() as (snapshot, store):
            queries = Queries.of(snapshot, X, items, with_scores=False)
            return search_within(snapshot, store, queries, radius, where, among)

    def replace_hasher(
        self, hasher: BaseHasher, ids: ArrayLike, X: SamplesLike, y: LabelsLike = None, *, kernels: Kernels = None
    ) -> None:
        """Change to another hasher, given the samples of all items; metadata and references stay.

        ``y`` is that of :meth:`add`, ``kernels`` that of :meth:`create`.
        """
        check_is_fitted(hasher)
        ids = check_ids(ids)
        with self._session.writing() as change:
            held = change.snapshot.index.ids
            if not np.array_equal(np.sort(ids), np.sort(held)):
                raise ValueError(
                    f"{len(ids)} ids were given, and the collection holds {len(held)}. A new hasher needs every item "
                    "exactly once, because vectors are not stored."
                )
            codes = hasher.encode_database(X, y)
            if len(codes) != len(ids):
                raise ValueError(f"There are {len(ids)} ids and {len(codes)} rows in X; give one row per id.")
            model = save_model(self.folder, hasher, kernels)
            self._session.use_kernels(model, kernels)
            change.store.set_fact("model", model)
            change.store.set_fact("n_bits", codes.n_bits)
            rows = change.store.rows(ids.tolist())
            packed = [code.tobytes() for code in codes.packed]
            change.store.put(row._replace(code=code) for row, code in zip(rows, packed, strict=True))

    def compact(self) -> None:
        """Give the space of removed items back to the file system."""
        self._session.compact()

    def verify(self) -> int:
        """Examine every page and every item; return the number of items or say what is damaged."""
        return self._session.verify()

    def rows(self) -> list[Row]:
        """Return every stored row by id, from one unchanging state."""
        with self._session.reading() as (_, store):
            return list(store.all_rows())

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all items to a file ending in .parquet or .jsonl; return how many there are."""
        with self._session.reading() as (snapshot, store):
            rows, n_bits = list(store.all_rows()), snapshot.index.n_bits
        write_rows(path, rows, n_bits)
        return len(rows)

    def close(self) -> None:
        """Close the files; another process may write from then on."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _put(
        self,
        samples: _Samples,
        ids: ArrayLike | None,
        metadata: Sequence[Mapping[str, Any]] | None,
        references: Iterable[str | None] | None,
        *,
        replace: bool,
    ) -> np.ndarray:
        with self._session.writing() as change:
            # Encoded here, where no other thread can replace the hasher before the codes are stored.
            index = change.snapshot.index
            codes = index._check_codes(samples.encoded(change.snapshot.hasher))
            if ids is None:
                ids = next_ids(len(codes), index.ids.max() if len(index) else None)
            ids = check_ids(ids, len(codes))
            texts = metadata_texts(metadata, len(codes), ascii_only=True)
            references = reference_texts(references, len(codes))
            present = change.store.present(ids.tolist())
            if present and not replace:
                raise ValueError(
                    f"The id {present[0]} is already in the collection, and nothing was added. "
                    "Use upsert to replace items, or give new ids."
                )
            packed = [code.tobytes() for code in codes.packed]
            change.store.put(map(Row, ids.tolist(), packed, references, texts))
            change.change_codes(np.array(present, np.int64), codes, ids)
        return ids


class _Samples(NamedTuple):
    """Items to store: samples and their labels, or codes that exist already."""

    X: SamplesLike | None
    y: LabelsLike
    codes: BinaryCodes | None

    def encoded(self, hasher: BaseHasher) -> BinaryCodes:
        if self.X is not None and self.codes is None:
            return hasher.encode_database(self.X, self.y)
        if self.X is None and self.codes is not None:
            return self.codes
        raise ValueError("Give either X or codes: rows to encode, or codes that you have already.")
