"""Collection: items, their codes and the hasher that made them, in one folder that survives crashes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base import BaseHasher
from ..codes import BinaryCodes
from ..exceptions import CollectionError, CollectionFormatError
from ..index import make_index
from ..index.base import check_ids, next_ids
from ..index.scan import ScanIndex
from .entries import metadata_texts, reference_texts
from .export import write_rows
from .filters import compile_filter
from .folder import appearing_folder, code_length, discard_other_models, load_model, lock_for_writing, save_model
from .store import ChangedWhileRead, Row, Store

__all__ = ["Collection", "Hit", "Item"]

_DATABASE = "items.sqlite"
_LOCK = "writer.lock"


class Item(NamedTuple):
    """What a collection keeps of an item beside its code."""

    id: int
    reference: str | None
    metadata: dict[str, Any]


class Hit(NamedTuple):
    """An item found, and its Hamming distance to the query."""

    id: int
    distance: int
    reference: str | None
    metadata: dict[str, Any]


class Collection:
    """A durable set of items with codes, searched exactly.

    A batch is stored completely or not at all, and once a method has returned, its change survives the
    death of the process and of the machine. One process may write at a time; any number may read meanwhile,
    each search seeing one unchanging state. A damaged file is refused, never searched.

    Labels are metadata: change them at any time with :meth:`update`. Items of a new class can be added as
    they are; their codes come from the hash functions learned without that class. A newly fitted hasher has
    other hash functions and needs every item encoded again: :meth:`replace_hasher`.

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

    def __init__(self, folder: str | os.PathLike, *, read_only: bool = False, kernels=None, n_jobs=None):
        self.folder = Path(folder)
        self.read_only = read_only
        self.n_jobs = n_jobs
        self._lock = threading.RLock()
        self._kernels = kernels
        self._index: ScanIndex | None = None
        self._generation = -1
        if not (self.folder / _DATABASE).is_file():
            raise FileNotFoundError(f"There is no collection in {str(self.folder)!r}. Make one with Collection.create.")
        self._writer_lock = None if read_only else lock_for_writing(self.folder / _LOCK)
        self._store = None
        try:
            self._store = Store(self.folder / _DATABASE, writable=not read_only)
            with self._store.reading():
                self._refresh()
                if not read_only:
                    # Not when they are replaced: a reader may be about to load the one that its state names.
                    discard_other_models(self.folder, self._model)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, folder: str | os.PathLike, hasher: BaseHasher, *, n_jobs: int | None = None) -> Self:
        """Make a new, empty collection for codes of a fitted hasher; the folder must not exist yet."""
        folder = Path(folder)
        check_is_fitted(hasher)
        if folder.exists():
            raise FileExistsError(f"{str(folder)!r} exists already. Open it, or choose another folder.")
        with appearing_folder(folder) as made:
            model = save_model(made, hasher)
            Store.create(made / _DATABASE, {"model": model, "n_bits": code_length(hasher)})
        return cls(folder, n_jobs=n_jobs)

    @property
    def hasher(self) -> BaseHasher:
        """The fitted hasher of this collection."""
        with self._reading():
            return self._hasher

    @property
    def n_bits(self) -> int:
        """The length of the codes."""
        return code_length(self.hasher)

    def __len__(self) -> int:
        with self._reading():
            return len(self._index)

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending."""
        with self._reading():
            return np.sort(self._index.ids)

    def add(self, X=None, *, codes=None, ids=None, metadata=None, references=None) -> np.ndarray:
        """Store new items and return their ids.

        Parameters
        ----------
        X : samples for the hasher, default=None
        codes : BinaryCodes, default=None
            The codes, instead of X, if they are known already.
        ids : array of int, default=None
            New ids; the next free ones if None.
        metadata : list of dict, default=None
            What JSON can hold, without NUL characters, one dictionary an item.
        references : list of str or None, default=None
            Where the picture or text is, one an item.
        """
        return self._put(X, codes, ids, metadata, references, replace=False)

    def upsert(self, X=None, *, ids, codes=None, metadata=None, references=None) -> np.ndarray:
        """Store items under given ids, replacing those that exist; the arguments are those of :meth:`add`."""
        return self._put(X, codes, ids, metadata, references, replace=True)

    def update(self, ids, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Replace the metadata of items, for example their labels; codes and references stay."""
        ids = check_ids(ids).tolist()
        texts = metadata_texts(metadata, len(ids))
        with self._lock:
            with self._writing():
                rows = self._store.rows(ids)
                self._store.put(row._replace(metadata=text) for row, text in zip(rows, texts, strict=True))
            self._generation += 1

    def remove(self, ids) -> None:
        """Remove items; if an id is unknown, nothing is removed."""
        ids = check_ids(ids)
        with self._lock:
            with self._writing():
                missing = np.setdiff1d(ids, self._store.present(ids.tolist()))
                if len(missing):
                    raise KeyError(f"The id {missing[0]} is not in the collection; nothing was removed.")
                self._store.delete(ids.tolist())
            with self._following(self._generation + 1):
                self._index.remove(ids)

    def get(self, ids) -> list[Item]:
        """Return items by id."""
        with self._reading():
            rows = self._store.rows(check_ids(ids).tolist())
        return [Item(row.id, row.reference, json.loads(row.metadata)) for row in rows]

    def codes(self, ids) -> BinaryCodes:
        """Return the codes of items."""
        with self._reading():
            return self._index.reconstruct(ids)

    def search(self, X=None, k: int = 10, *, items=None, where=None, by_scores: bool = False) -> list[list[Hit]]:
        """Return the k nearest items of each query, by distance and then by id.

        Parameters
        ----------
        X : samples for the hasher, default=None
        k : int, default=10
        items : array of int, default=None
            Ids of stored items to search for, instead of X; an item finds itself.
        where : dict, default=None
            A filter on metadata, such as ``{"label": 3, "price": {"<": 10}}``. If fewer than k items pass, so
            many are returned.
        by_scores : bool, default=False
            Order items at equal distance by their inner product with the real-valued scores of the query;
            needs X.
        """
        if by_scores and X is None:
            raise ValueError("by_scores needs X: a stored item has a code, but no scores.")
        with self._reading():
            scores = self._hasher.decision_function(X) if by_scores else None
            queries = self._queries(X, items)
            found = self._index.search(queries, k, among=self._allowed(where), scores=scores)
            return self._hits(zip(found.distances, found.ids, strict=True))

    def search_radius(self, X=None, radius: int = 0, *, items=None, where=None) -> list[list[Hit]]:
        """Return all items within ``radius`` of each query; the arguments are those of :meth:`search`."""
        with self._reading():
            found = self._index.search_radius(self._queries(X, items), radius, among=self._allowed(where))
            return self._hits(found.of(query) for query in range(len(found.starts) - 1))

    def replace_hasher(self, hasher: BaseHasher, ids, X) -> None:
        """Change to another hasher, given the samples of all items; metadata and references stay."""
        check_is_fitted(hasher)
        ids = check_ids(ids)
        codes = hasher.encode(X)
        if len(codes) != len(ids):
            raise ValueError(f"There are {len(ids)} ids and {len(codes)} rows in X; give one row an id.")
        with self._writing():
            if not np.array_equal(np.sort(ids), np.sort(self._index.ids)):
                raise ValueError(
                    f"{len(ids)} ids were given, the collection holds {len(self._index)}; a new hasher needs "
                    "every item, exactly once, because vectors are not stored."
                )
            model = save_model(self.folder, hasher)
            rows = self._store.rows(ids.tolist())
            packed = [code.tobytes() for code in codes.packed]
            self._store.put(row._replace(code=code) for row, code in zip(rows, packed, strict=True))
            self._store.set_fact("model", model)
            self._store.set_fact("n_bits", code_length(hasher))
        with self._reading():
            # Reading again is what puts the new hasher and the new codes in the place of the old ones.
            return

    def compact(self) -> None:
        """Give the space of removed items back to the file system."""
        with self._lock:
            self._check_writable()
            self._store.compact()

    def verify(self) -> int:
        """Examine every page and every item; return the number of items or say what is damaged."""
        with self._lock:
            self._check_open()
            self._store.check_integrity()
            self._generation = -1
            return len(self)

    def rows(self) -> list[Row]:
        """Return every stored row by id, from one unchanging state."""
        with self._reading():
            return list(self._store.all_rows())

    def export(self, path: str | os.PathLike) -> int:
        """Write all items to a file ending in .parquet or .jsonl; return how many they are."""
        with self._reading():
            rows, n_bits = list(self._store.all_rows()), code_length(self._hasher)
        write_rows(path, rows, n_bits)
        return len(rows)

    def close(self) -> None:
        """Let go of the files; another process may write then."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            if self._writer_lock is not None:
                os.close(self._writer_lock)
                self._writer_lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _put(self, X, codes, ids, metadata, references, *, replace: bool) -> np.ndarray:
        with self._lock:
            with self._writing():
                # Here, where no other thread can replace the hasher between encoding and storing.
                codes = self._encode(X, codes)
                if ids is not None:
                    ids = check_ids(ids, len(codes))
                texts = metadata_texts(metadata, len(codes))
                references = reference_texts(references, len(codes))
                if ids is None:
                    ids = next_ids(len(codes), self._index.ids.max() if len(self._index) else None)
                present = self._store.present(ids.tolist())
                if present and not replace:
                    raise ValueError(
                        f"The id {present[0]} is already in the collection, and nothing was added. "
                        "Use upsert to replace items, or give new ids."
                    )
                packed = [code.tobytes() for code in codes.packed]
                self._store.put(map(Row, ids.tolist(), packed, references, texts))
            with self._following(self._generation + 1):
                self._change_index(present, codes, ids)
        return ids

    def _encode(self, X, codes) -> BinaryCodes:
        if (X is None) == (codes is None):
            raise ValueError("Give either X or codes: rows to encode, or codes that are known already.")
        codes = self._hasher.encode(X) if codes is None else codes
        return self._index._check_codes(codes)

    def _queries(self, X, items) -> BinaryCodes:
        if (X is None) == (items is None):
            raise ValueError("Give either X or items: rows to search for, or ids of stored items.")
        return self._hasher.encode(X) if items is None else self._index.reconstruct(items)

    def _allowed(self, where: Mapping[str, Any] | None) -> np.ndarray | None:
        if where is None:
            return None
        return np.array(self._store.matching(*compile_filter(where)), np.int64)

    def _hits(self, found: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[list[Hit]]:
        found = [(distances.tolist(), ids.tolist()) for distances, ids in found]
        rows = {row.id: row for row in self._store.rows(sorted({item for _, ids in found for item in ids}))}
        return [
            [_hit(rows[item], distance) for item, distance in zip(ids, distances, strict=True)]
            for distances, ids in found
        ]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            self._check_open()
            try:
                with self._store.reading():
                    self._refresh()
                    yield
            except ChangedWhileRead:
                # What was taken into memory may be as wrong as what was read.
                self._generation = -1
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self._check_writable()
            with self._store.writing():
                # What is in memory may be older than the file: a change may have been interrupted once it was stored.
                self._refresh()
                yield

    def _check_open(self) -> None:
        if self._store is None:
            raise CollectionError(
                f"The collection {str(self.folder)!r} was closed here; make a new Collection object to open it again."
            )

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise CollectionError("This collection was opened read-only; open it again to change it.")

    def _refresh(self) -> None:
        """Read what has changed in the file since."""
        generation = self._store.fact("generation")
        known = self._generation
        if generation == known:
            return
        with self._following(generation):
            if known < 0 or not self._catch_up(known):
                self._read_all()

    @contextmanager
    def _following(self, generation: int) -> Iterator[None]:
        """Bring what is in memory to a generation; if that is interrupted, the next call reads everything again."""
        self._generation = -1
        yield
        self._generation = generation

    def _catch_up(self, known: int) -> bool:
        """Read the items that changed, if the file still tells which; return whether that was enough."""
        changed = self._store.changed_since(known)
        if changed is None or self._store.fact("model") != self._model:
            return False
        rows = self._store.rows(self._store.present(changed))
        ids, codes = _unpacked(rows, code_length(self._hasher))
        changed = np.array(changed, np.int64)
        self._change_index(changed[self._index._find(changed) >= 0], codes, ids)
        return len(self._index) == self._store.fact("n_items")

    def _read_all(self) -> None:
        """Read model and codes; what is in memory changes only once everything is read."""
        model = self._store.fact("model")
        hasher = load_model(self.folder, model, self._kernels)
        n_bits = code_length(hasher)
        if self._store.fact("n_bits") != n_bits:
            raise CollectionFormatError(
                f"The codes have {self._store.fact('n_bits')} bits, those of the model {n_bits}: the "
                "collection is damaged. Restore it from a copy."
            )
        ids, codes = _unpacked(self._store.all_rows(), n_bits)
        self._choose_index(codes, ids)
        self._model, self._hasher = model, hasher

    def _choose_index(self, codes: BinaryCodes, ids: np.ndarray) -> None:
        self._index = make_index(codes, ids, n_jobs=self.n_jobs)
        self._n_at_choice = max(len(ids), 1)

    def _change_index(self, gone, codes: BinaryCodes, ids: np.ndarray) -> None:
        """Remove and add codes; choose the kind of index again whenever their number has doubled."""
        self._index.remove(gone)
        self._index.add(codes, ids)
        if len(self._index) >= 2 * self._n_at_choice:
            held = np.sort(self._index.ids)
            self._choose_index(self._index.reconstruct(held), held)


def _hit(row: Row, distance: int) -> Hit:
    return Hit(row.id, distance, row.reference, json.loads(row.metadata))


def _unpacked(rows: Iterable[Row], n_bits: int) -> tuple[np.ndarray, BinaryCodes]:
    """Return ids and codes of rows."""
    rows = [(row.id, row.code) for row in rows]
    packed = np.frombuffer(b"".join(code for _, code in rows), np.uint8).reshape(len(rows), -(-n_bits // 8))
    return np.array([item for item, _ in rows], np.int64), BinaryCodes(packed, n_bits)
