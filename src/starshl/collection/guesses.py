"""Guesses: predicted labels of items that have none, how sure they are, and whether they still follow from the labels.

A guess is no label: it is derived, and kept in a file of its own in the folder of the collection, with a digest of what
it was computed from. Whatever has changed since, such as a label, an item, or the model behind guesses of the hasher,
makes them stale, until they are computed again. Items that have got a label or were removed in the meantime have no
guess, and classes have the names of today.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from .._common.bundle import read_bundle, write_bundle
from .._common.files import array_digest
from .._common.labels import Label
from ..exceptions import BundleFormatError
from .answers import Guess, Item
from .filters import shown_classes_by_id
from .labels import label_text
from .state import State
from .store import Store

FILE = ".guesses.star"
Order = Literal["id", "likeliest", "least_sure"]
ORDERS: tuple[str, ...] = ("id", "likeliest", "least_sure")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Guesses:
    """The guessed labels of a collection's items, as :meth:`starshl.Collection.guesses` returns them.

    Parameters
    ----------
    ids : int array of shape (n_guesses,), ascending: the items without a label for which there is a guess
    classes : the labels that are guessed
    numbers : int array of shape (n_guesses,), the place of each guess in ``classes``
    confidences : float32 array of shape (n_guesses,), from 0 to 1
        They order guesses. As numbers they mean something only if ``knows_confidence``.
    by : "lesson" if they follow from the labels of a few items, "hasher" if the collection's model predicts them
    is_current : whether nothing has changed since that they depend on
    knows_confidence : whether enough labels were given to tell how right confidences are
    """

    ids: np.ndarray
    classes: tuple[Label, ...]
    numbers: np.ndarray
    confidences: np.ndarray
    by: str
    is_current: bool
    knows_confidence: bool = True

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, ids: Sequence[int] | np.ndarray) -> list[Guess | None]:
        """Return the guess for each item, None where there is none."""
        wanted = np.asarray(ids, np.int64)
        places = np.minimum(np.searchsorted(self.ids, wanted), max(len(self.ids) - 1, 0))
        known = self.ids[places] == wanted if len(self.ids) else np.zeros(len(wanted), bool)
        found = zip(places.tolist(), known.tolist(), strict=True)
        return [self._at(place) if is_known else None for place, is_known in found]

    def _at(self, place: int) -> Guess:
        confidence = round(float(self.confidences[place]), 4) if self.knows_confidence else None
        return Guess(self.classes[self.numbers[place]], confidence)

    def counts(self) -> dict[Label, int]:
        """Return for how many items each class is guessed, the most frequent first."""
        counts = np.bincount(self.numbers, minlength=len(self.classes)).tolist()
        found = [(label, n) for label, n in zip(self.classes, counts, strict=True) if n]
        return dict(sorted(found, key=lambda entry: (-entry[1], label_text(entry[0]))))

    def among(self, texts: Sequence[str]) -> np.ndarray:
        """Return the ids of items whose guess is one of some labels, given as JSON texts."""
        wanted = np.array([label_text(label) in set(texts) for label in self.classes], bool)
        found: np.ndarray = self.ids[wanted[self.numbers]] if len(self.classes) else self.ids[:0]
        return found

    def ordered(self, ids: np.ndarray, order: Order) -> np.ndarray:
        """Return ids by how sure their labels are; given ones are certain."""
        if order == "id" or not len(self.ids):
            return ids
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        sure = np.where(self.ids[places] == ids, self.confidences[places], 2.0)
        found: np.ndarray = ids[np.argsort(-sure if order == "likeliest" else sure, kind="stable")]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Guesses as they were computed, the version whose names their classes have, and what they were computed from."""

    guesses: Guesses
    version: int
    origin: str


class GuessFile:
    """The file of guesses in the folder of a collection, which any number of threads may use."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self._path = folder / FILE
        self._read_only = read_only
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._kept: _Kept | None = None
        self._shown: tuple[int, _Kept, Guesses] | None = None

    def keep(self, state: State, store: Store, guesses: Guesses) -> None:
        """Keep guesses that were computed from this state, in the file if that can be written."""
        kept = _Kept(guesses, state.generation, _origin(state, store, guesses.by))
        with self._lock:
            self._kept = kept
            if self._read_only:
                return
            header = {
                "kind": "guesses",
                "origin": kept.origin,
                "version": kept.version,
                "by": guesses.by,
                "knows_confidence": guesses.knows_confidence,
                "classes": [label_text(label) for label in guesses.classes],
            }
            arrays = {"ids": guesses.ids, "numbers": guesses.numbers, "confidences": guesses.confidences}
            try:
                write_bundle(self._path, header, arrays)
            except OSError as error:
                _log.warning("%s could not be kept: it is computed again at the next start", self._path, exc_info=error)
            self._seen = self._signature()

    def read(self, state: State, store: Store) -> Guesses | None:
        """Return the guesses as they are in a state, None if nobody has made any."""
        with self._lock:
            signature = self._signature()
            if signature is not None and signature != self._seen:
                self._seen, self._kept = signature, _read(self._path)
            kept = self._kept
            if kept is None:
                return None
            if self._shown is None or self._shown[:2] != (state.generation, kept):
                self._shown = state.generation, kept, _as_of(kept, state, store)
            return self._shown[2]

    def _signature(self) -> tuple[int, int] | None:
        """Return what changes when another process writes the file, None if there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def with_guesses(items: list[Item], guesses: Guesses | None) -> list[Item]:
    """Return items with the guessed labels of those that have none."""
    if guesses is None:
        return items
    found = guesses.of([item.id for item in items])
    return [
        item if guess is None or item.label is not None else replace(item, guess=guess)
        for item, guess in zip(items, found, strict=True)
    ]


def _as_of(kept: _Kept, state: State, store: Store) -> Guesses:
    """Return kept guesses for the items that are still unlabeled, under the names that classes have now."""
    guesses, vocabulary = kept.guesses, state.vocabulary
    then = vocabulary.as_of(kept.version)
    class_ids = [then.id_of(label_text(label)) for label in guesses.classes]
    names = [
        label if class_id is None else vocabulary.label(class_id)
        for label, class_id in zip(guesses.classes, class_ids, strict=True)
    ]
    classes = list(dict.fromkeys(name for name in names if name is not None))  # merged ones are one
    places = np.array([-1 if name is None else classes.index(name) for name in names], np.int64)
    numbers = places[guesses.numbers] if len(names) else guesses.numbers
    held = np.sort(state.index.ids)
    unlabeled = held[shown_classes_by_id(state, store) < 0]
    stays = (numbers >= 0) & np.isin(guesses.ids, unlabeled)
    return replace(
        guesses,
        ids=guesses.ids[stays],
        classes=tuple(classes),
        numbers=numbers[stays],
        confidences=guesses.confidences[stays],
        is_current=kept.origin == _origin(state, store, guesses.by),
    )


def _origin(state: State, store: Store, by: str) -> str:
    """Return a digest of all that guesses follow from: items, vectors, labels, what was rejected, and the model."""
    about = [
        by,
        state.vector_file_name,
        store.meta("n_records") if state.vectors is not None else 0,
        store.meta("n_entries"),  # of journals: rejections are entries
        state.model if by == "hasher" else "",
    ]
    arrays = {"ids": np.sort(state.index.ids), "classes": shown_classes_by_id(state, store)}
    return array_digest(arrays, head=json.dumps(about))


def _read(path: Path) -> _Kept | None:
    """Return what a file holds, None if it cannot be used: guesses can be computed again."""
    try:
        header, arrays = read_bundle(path)
        classes = tuple(json.loads(text) for text in header["classes"])
        ids, numbers, confidences = arrays["ids"], arrays["numbers"], arrays["confidences"]
        version, origin, by, knows = (header[name] for name in ("version", "origin", "by", "knows_confidence"))
    except (OSError, BundleFormatError, KeyError, TypeError, ValueError):
        return None
    fits = (
        ids.dtype == np.int64
        and numbers.dtype == np.int64
        and confidences.dtype == np.float32
        and ids.ndim == 1
        and ids.shape == numbers.shape == confidences.shape
        and all(isinstance(label, str | int | bool) for label in classes)
        and isinstance(version, int)
        and isinstance(origin, str)
        and by in ("lesson", "hasher")
        and isinstance(knows, bool)
    )
    if not fits or (len(ids) and not (numbers.min() >= 0 and numbers.max() < len(classes))):
        return None
    if not (np.all(np.diff(ids) > 0) and np.all((confidences >= 0) & (confidences <= 1))):
        return None
    return _Kept(Guesses(ids, classes, numbers, confidences, by, False, knows), version, origin)
