"""The classes of a collection's hasher: which classes of the vocabulary they are, and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._common.labels import Label
from ..codes.queries import EncodedQueries
from ..exceptions import CollectionFormatError
from .labels import label_text
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..hashers.base import BaseHasher


def fitted_classes(hasher: BaseHasher) -> ShownClasses:
    """Return the classes of a hasher under the names of its fit."""
    return ShownClasses(hasher.class_labels, np.arange(len(hasher.class_labels)))


def texts_of_classes(hasher: BaseHasher) -> list[str]:
    """Return the names of the classes that a hasher was fitted to, as JSON texts; clusters are no classes."""
    return [] if hasher.holds_clusters else [label_text(label) for label in hasher.class_labels]


@dataclass(frozen=True, slots=True)
class ModelClasses:
    """The classes that the hasher was fitted to.

    Parameters
    ----------
    ids : the class of each of the hasher's classes, in their order
    version : that of the collection when the hasher came
    places : the place among the hasher's classes of every class there was then, -1 where it has none; what was merged
        by then has one place, and nothing that happens to names later changes a place, and so a code
    """

    ids: tuple[int, ...]
    version: int
    places: np.ndarray

    @classmethod
    def of(cls, ids: Sequence[int], version: int, vocabulary: Vocabulary) -> ModelClasses:
        """Return the classes of a hasher that came at a version."""
        then = vocabulary.as_of(version)
        place = {class_id: number for number, class_id in enumerate(ids)}
        return cls(tuple(ids), version, np.array([place.get(shown, -1) for shown in then.shown_as], np.int64))

    @property
    def content(self) -> str:
        """What the database keeps."""
        return json.dumps([list(self.ids), self.version])

    @classmethod
    def read(cls, content: str, vocabulary: Vocabulary, n_classes: int) -> ModelClasses:
        """Undo :attr:`content`, for a hasher of so many classes; a damaged file may hold anything there."""
        try:
            ids, version = json.loads(content)
            found = cls.of([int(each) for each in ids], int(version), vocabulary)
        except (ValueError, TypeError, RecursionError) as error:
            raise CollectionFormatError.damaged(f"the classes of its model {content[:60]!r} cannot be read") from error
        if len(found.ids) != n_classes or not all(0 <= each < len(found.places) for each in ids):
            raise CollectionFormatError.damaged("its model has other classes than it says")
        return found

    def places_of(self, class_ids: Sequence[int | None] | np.ndarray) -> np.ndarray:
        """Return the places of the classes of items among those of the hasher, -1 where one has none.

        Items without a class have None or, in an array, -1.
        """
        if not isinstance(class_ids, np.ndarray):
            class_ids = np.array([-1 if each is None else each for each in class_ids], np.int64)
        known, last = np.append(self.places, -1), len(self.places)
        return known[np.where((class_ids < 0) | (class_ids > last), last, class_ids)]

    def shown(self, vocabulary: Vocabulary) -> ShownClasses:
        """Return how the classes are shown now."""
        shown = [vocabulary.shown_as[class_id] for class_id in self.ids]
        different = [each for each in dict.fromkeys(shown) if each >= 0]
        column = {class_id: number for number, class_id in enumerate(different)}
        labels: list[Label] = [json.loads(vocabulary.names[class_id]) for class_id in different]
        return ShownClasses(labels, np.array([column.get(each, -1) for each in shown], np.int64))


@dataclass(frozen=True, slots=True)
class ShownClasses:
    """The classes of a hasher as users see them: merged ones count as one, and removed ones are left out.

    ``columns`` is the place in ``labels`` of each of the hasher's classes, -1 for a removed one.
    """

    labels: list[Label]
    columns: np.ndarray

    @property
    def is_plain(self) -> bool:
        """Whether each class of the hasher is one class still, whatever it is called."""
        return np.array_equal(self.columns, np.arange(len(self.columns)))

    def label(self, place: int) -> Label | None:
        """Return how one of the hasher's classes is shown, None if it was removed."""
        return None if self.columns[place] < 0 else self.labels[self.columns[place]]

    def shares(self, shares: np.ndarray) -> np.ndarray:
        """Return the probabilities of the shown classes: summed where classes were merged, and 1 in all again."""
        if self.is_plain:
            return shares
        summed = np.zeros((len(shares), len(self.labels)))
        kept = self.columns >= 0
        np.add.at(summed.T, self.columns[kept], shares.T[kept])
        total = summed.sum(axis=1, keepdims=True)
        return np.where(total > 0, summed / np.where(total > 0, total, 1.0), 1.0 / max(len(self.labels), 1))

    def pooled(self, queries: EncodedQueries) -> EncodedQueries:
        """Return queries to which merged classes are one class and removed ones none, as for :meth:`shares`."""
        if self.is_plain or queries.posteriors is None:
            return queries
        # The last column, which stands for removed classes, has no share.
        shares = np.append(self.shares(queries.posteriors), np.zeros((len(queries), 1)), axis=1)
        return replace(queries, posteriors=shares[:, self.columns])
