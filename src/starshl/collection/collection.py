"""Collection: items, their codes and the hasher that made them, in one folder that survives crashes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._metadata import metadata_texts
from .._types import LabelsLike, SamplesLike
from ..base import BaseHasher
from ..codes import BinaryCodes
from ..features import Extractor
from ..index.base import check_ids
from .additions import Samples
from .changes import declare, put_items, replace_model, set_item_labels
from .entries import Item, item_of
from .export import write_rows
from .fields import check_fields, fields_text
from .folder import Kernels, appearing_folder, save_model
from .previews import Preview, delete_previews, find_preview
from .raw import raw_facts
from .recorded import RecordedCollection
from .search import Hit
from .session import DATABASE
from .store import Row, Store
from .vectors import create_vectors

__all__ = ["Collection", "Hit", "Item"]


class Collection(RecordedCollection):
    """A durable set of items with codes, searched exactly.

    A batch is stored completely or not at all, and once a method has returned, its change survives a crash of the
    process or the machine. One process may write at a time; any number may read at the same time, and each search sees
    one unchanging state. A damaged file is refused, never searched.

    An item may have a label, which can change at any time (:meth:`set_labels`). Hashers that give each class a codeword
    give labeled items that codeword; if the label is removed, the item has the code of its vector again. A newly fitted
    hasher has different hash functions, so every item must be encoded again: use :meth:`replace_hasher`, which needs
    nothing else if the collection keeps the vectors. Kept vectors also make searches more exact.

    Parameters
    ----------
    folder : path
    read_only : bool, default=False
        Leave the folder as it is; other processes may write to it.
    kernels : list of kernels, default=None
        Those of the hasher, if it was fitted with functions, which a file cannot hold.
    steps : list, default=None
        Those of the extractor that a file cannot hold, None for the others; see :class:`starshl.features.Extractor`.
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
    >>> with Collection.create(folder, LSHash(32, random_state=0).fit(X), fields={"page": int}) as digits:
    ...     ids = digits.add(X, labels=y, metadata=[{"page": i // 100} for i in range(len(X))])
    ...     hits = digits.search(X[:1], k=2, labels=[0], where={"page": {"<": 10}})[0]
    >>> [(hit.id, hit.distance, hit.label, hit.metadata) for hit in hits]
    [(0, 0, 0, {'page': 0}), (458, 1, 0, {'page': 4})]
    """

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        hasher: BaseHasher,
        *,
        vectors: str | None = None,
        fields: Mapping[str, type | str] | None = None,
        extractor: Extractor | None = None,
        kind: str | None = None,
        title: str | None = None,
        kernels: Kernels = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Make a new, empty collection for codes of a fitted hasher; the folder must not exist yet.

        Parameters
        ----------
        folder : path
        hasher : fitted hasher
        vectors : {"float16", "int8", None}, default=None
            Keep the vectors of items in a file, two bytes or one per number, for searches that compare them and for
            :meth:`replace_hasher`. They take no memory besides the system's cache.
        fields : dict, default=None
            Metadata fields to filter by, with their types, such as ``{"year": int, "topic": str}``: a filter on them
            takes milliseconds. Types are int, float, str and bool. See also :meth:`declare_fields`.
        extractor : Extractor, default=None
            Makes the vectors of the hasher from raw pictures or texts; see :meth:`extract`.
        kind : {"pictures", "texts", "vectors"}, default=None
            What items are, for pages that show them; None is what the extractor takes, or "vectors".
        title : str, default=None
            The metadata field that says what an item is; see :meth:`title_of`.
        kernels : list of kernels, default=None
            Those of the hasher, if it was fitted with functions, which a file cannot hold.
        n_jobs : int, default=None
            Threads of a search.
        """
        check_is_fitted(hasher)
        with appearing_folder(Path(folder)) as draft:
            facts: dict[str, str | int] = {"fields": fields_text(check_fields(fields or {}))}
            facts |= {} if vectors is None else create_vectors(draft, vectors, hasher)
            facts |= raw_facts(draft, hasher, extractor, kind, title)
            model, facts["space"] = save_model(draft, hasher, kernels)
            Store.create(draft / DATABASE, model, hasher.n_bits_, facts)
        return cls(folder, kernels=kernels, steps=None if extractor is None else extractor.given_steps, n_jobs=n_jobs)

    def add(
        self,
        X: SamplesLike | None = None,
        *,
        labels: LabelsLike = None,
        codes: BinaryCodes | None = None,
        encoder: str | None = None,
        ids: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
        previews: Iterable[bytes | None] | None = None,
    ) -> np.ndarray:
        """Store new items and return their ids.

        Parameters
        ----------
        X : samples for the hasher, default=None
        labels : array of shape (n_items,), default=None
            Labels of the items: strings, whole numbers or booleans; -1, NaN, None or empty text where there is none.
            If the hasher has a codeword for the class of a label, it becomes the code of the item.
        codes : BinaryCodes, default=None
            The codes of the vectors, if you have them already: instead of X, or in addition to X if vectors are kept.
        encoder : str, default=None
            Which model made ``codes``, as :attr:`encoder` of a collection names it; None if that is not known.
        ids : array of int, default=None
            New ids; the next free ones if None.
        metadata : list of dict, default=None
            One dictionary per item, of what JSON can hold; values of declared fields have their types.
        references : list of str or None, default=None
            Where the picture or text is, one per item.
        previews : list of bytes or None, default=None
            A small picture of each item, as a PNG, JPEG or WebP file of up to 256 KB; see
            :func:`starshl.features.preview_of`.
        """
        samples = Samples(X, codes, labels, encoder)
        return put_items(self._session, samples, ids, metadata, references, previews, replace=False)

    def upsert(
        self,
        X: SamplesLike | None = None,
        *,
        ids: ArrayLike,
        labels: LabelsLike = None,
        codes: BinaryCodes | None = None,
        encoder: str | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        references: Iterable[str | None] | None = None,
        previews: Iterable[bytes | None] | None = None,
    ) -> np.ndarray:
        """Store items under given ids, replacing those that exist; the arguments are those of :meth:`add`.

        Nothing of a replaced item stays: not its label, its metadata or its preview.
        """
        samples = Samples(X, codes, labels, encoder)
        return put_items(self._session, samples, ids, metadata, references, previews, replace=True)

    def set_labels(self, ids: ArrayLike, labels: LabelsLike, *, warn_unknown: bool = True) -> list[Item]:
        """Store the labels of items and the codes that follow from them; return the items as they are then.

        Parameters
        ----------
        ids : array of int
        labels : array of shape (n_items,), or None
            As in :meth:`add`. An item without a label, or with one that the hasher does not know, has the code of its
            vector; None removes the labels of all these items.
        warn_unknown : bool, default=True
            Warn if the hasher does not know a label.
        """
        return set_item_labels(self._session, check_ids(ids), labels, warn_unknown=warn_unknown)

    def update(self, ids: ArrayLike, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Replace the metadata of items; labels, codes and references stay."""
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
            missing = ids[~change.snapshot.index.holds(ids)]
            if len(missing):
                raise KeyError(f"The id {missing[0]} is not in the collection; nothing was removed.")
            change.store.delete(ids.tolist())
            delete_previews(change.store, ids.tolist())
            change.change_codes(gone=ids)

    def get(self, ids: ArrayLike) -> list[Item]:
        """Return items by id."""
        with self._session.reading() as (_, store):
            rows = store.rows(check_ids(ids).tolist())
        return [item_of(row) for row in rows]

    def preview(self, item: int) -> Preview | None:
        """Return the small picture of an item with its media type, None if it has none."""
        with self._session.reading() as (_, store):
            return find_preview(store, check_ids([item]).tolist()[0])

    def codes(self, ids: ArrayLike) -> BinaryCodes:
        """Return the codes of items."""
        with self._session.reading() as (snapshot, _):
            return snapshot.index.reconstruct(ids)

    def vectors(self, ids: ArrayLike) -> np.ndarray:
        """Return the kept vectors of items, as float64 of shape (n_items, n_columns)."""
        with self._session.reading() as (snapshot, store):
            return snapshot.vectors_of(store, check_ids(ids).tolist())

    def replace_hasher(
        self,
        hasher: BaseHasher,
        ids: ArrayLike | None = None,
        X: SamplesLike | None = None,
        *,
        codes: BinaryCodes | None = None,
        kernels: Kernels = None,
    ) -> None:
        """Change to another hasher; labels, metadata and references stay.

        Parameters
        ----------
        hasher : fitted hasher
            If the collection has an extractor, it stays, and the hasher takes what it makes.
        ids, X : default=None
            All items and their samples. A collection that keeps vectors encodes these if X is None; otherwise it keeps
            X from then on, which may have other columns. If the new hasher is of the same space (fitted to the same
            :class:`starshl.Codebook`), you need neither: items keep the codes of their vectors and their encoders.
        codes : BinaryCodes, default=None
            The new codes of the vectors of ``ids``, if you have them already, instead of X: the change then takes no
            longer than storing them.
        kernels : as in :meth:`create`
        """
        check_is_fitted(hasher)
        replace_model(self._session, hasher, None if ids is None else check_ids(ids), X, codes, kernels)

    def declare_fields(self, fields: Mapping[str, type | str]) -> None:
        """Declare metadata fields, so that filters on them are fast; every item must fit, or nothing changes.

        Parameters
        ----------
        fields : dict
            Names and types, as in :meth:`create`. An item may lack a field, or have None there. A field that is
            declared already keeps its type.
        """
        declare(self._session, check_fields(fields))

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
            rows, hasher = list(store.all_rows()), snapshot.hasher
        write_rows(path, rows, hasher)
        return len(rows)
